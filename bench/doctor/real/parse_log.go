// Adds up the bytes of the answers for each page in logs of a web server, one goroutine for each log:
// parse_log LOG...
package main

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
)

var request = regexp.MustCompile(`^(\S+) \S+ \S+ \[[^\]]+\] "(\S+) ([^?"]+)\S* [^"]*" (\d+) (\d+)$`)

func parse(path string) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	bytes := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if found := request.FindStringSubmatch(lines.Text()); found != nil {
			size, _ := strconv.Atoi(found[5])
			bytes[found[2]+" "+found[3]] += size
		}
	}
	return bytes, nil
}

func main() {
	var all sync.WaitGroup
	var lock sync.Mutex
	sum := 0
	for _, path := range os.Args[1:] {
		all.Add(1)
		go func(path string) {
			defer all.Done()
			bytes, err := parse(path)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			lock.Lock()
			defer lock.Unlock()
			for _, size := range bytes {
				sum += size
			}
		}(path)
	}
	all.Wait()
	fmt.Println(sum)
}
