// A probe for Go: creates units of concurrency for contend to measure. README.md describes the protocol.
//
//	go build -o probe go.go && ./probe goroutine
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"
)

// A kind of unit. To add one, add an entry to kinds.
type kind struct {
	start func(due time.Time) // creates one unit; only timers use due
	wake  func()              // lets all units end
	trips func(m int) string  // exchanges m messages with one unit and returns the answer after "trips "
}

var kinds = map[string]kind{
	"goroutine": {
		start: func(time.Time) { go wait() },
		wake:  func() { close(gate) },
		trips: pingPong,
	},
	"afterfunc": {
		start: func(due time.Time) {
			time.AfterFunc(time.Until(due), end)
			count() // a timer runs no code before it is due, and the runtime does not report their number
		},
		wake:  func() {}, // timers end by themselves
		trips: func(int) string { return "none a timer only fires, it takes no message" },
	},
}

// State of the units of one park. It is global, so that a unit needs no pointer to find it.
var (
	total     int64         // number of units to create
	waiting   atomic.Int64  // number of units that have counted themselves, to wait next
	ended     atomic.Int64  // number of units that have ended
	gate      chan struct{} // closed by wake
	allWait   chan struct{} // closed when the last unit counts itself before it waits
	haveEnded chan struct{} // closed by the last unit that ends
)

func wait() {
	count()
	<-gate
	end()
}

func count() {
	if waiting.Add(1) == total {
		close(allWait)
	}
}

func end() {
	if ended.Add(1) == total {
		close(haveEnded)
	}
}

func park(k kind, n int64, hold time.Duration) string {
	began := time.Now()
	due := began.Add(hold)
	total = n
	waiting.Store(0)
	ended.Store(0)
	gate, allWait, haveEnded = make(chan struct{}), make(chan struct{}), make(chan struct{})
	for i := int64(0); i < n; i++ {
		k.start(due)
	}
	<-allWait
	took := time.Since(began)
	runtime.GC()
	return fmt.Sprintf("parked %d %d %d", waiting.Load(), took.Nanoseconds(), used())
}

func wake(k kind) string {
	began := time.Now()
	early := ended.Load()
	k.wake()
	<-haveEnded
	return fmt.Sprintf("woken %d %d %d", early, ended.Load(), time.Since(began).Nanoseconds())
}

func rest() string {
	gate, allWait, haveEnded = nil, nil, nil
	runtime.GC()
	debug.FreeOSMemory()
	return fmt.Sprintf("rested %d", used())
}

// Returns the size in bytes of the pages that have objects or stacks of goroutines. HeapAlloc would leave out stacks
// and fragmentation, and Sys would include memory that is no longer used.
func used() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapInuse + stats.StackInuse
}

func pingPong(m int) string {
	there, back := make(chan int), make(chan int)
	go func() {
		for message := range there {
			back <- message
		}
	}()
	began := time.Now()
	for i := 0; i < m; i++ {
		there <- i
		if answer := <-back; answer != i {
			return fmt.Sprintf("none message %d was answered by %d", i, answer)
		}
	}
	took := time.Since(began)
	close(there)
	return fmt.Sprintf("%d %d", m, took.Nanoseconds())
}

func answer(k kind, command string) (string, error) {
	var n, hold int64
	switch word, numbers, _ := strings.Cut(command, " "); word {
	case "park":
		if _, err := fmt.Sscan(numbers, &n, &hold); err != nil || n < 1 {
			return "", fmt.Errorf("park wants two numbers: %q", command)
		}
		return park(k, n, time.Duration(hold)*time.Millisecond), nil
	case "wake":
		return wake(k), nil
	case "rest":
		return rest(), nil
	case "trips":
		if _, err := fmt.Sscan(numbers, &n); err != nil {
			return "", fmt.Errorf("trips wants a number: %q", command)
		}
		return "trips " + k.trips(int(n)), nil
	}
	return "", fmt.Errorf("no such command: %q", command)
}

func main() {
	k, known := kinds[strings.Join(os.Args[1:], " ")]
	if !known {
		fail(fmt.Errorf("no such kind of unit: %q", os.Args[1:]))
	}
	park(k, 100, time.Millisecond)
	wake(k)
	rest()
	fmt.Println("ready Go", strings.TrimPrefix(runtime.Version(), "go"))

	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		line, err := answer(k, commands.Text())
		if err != nil {
			fail(err)
		}
		fmt.Println(line)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
