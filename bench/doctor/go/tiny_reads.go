// Fault: the program reads a file with one system call per byte. The kernel, and the way into it,
// takes most of the time.
// The fixed variant reads through a buffer of bufio.
// The twin reads small messages from a pipe; their sender thinks for some milliseconds before
// each of them.
// It is healthy: the reader waits for the sender, and the calls take next to no time.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"
)

const (
	totalUS      = 4_200_000 // what the sick variant takes in total, about
	fileBytes    = 200_000
	readsPerMS   = 2_000
	byteRounds   = 10    // the steps of mixing for one byte
	messageBytes = 8     // the bytes of one message of the twin
	thinkUS      = 2_000 // the mean think time of the twin
	messageUS    = 50    // the computing for one message of the twin
	roundsPerUS  = 500
	limit        = 30 * time.Second
)

type plan struct {
	seed   uint64
	bytes  uint64
	passes uint64
}

func makePlan(seed uint64) plan {
	state := seed
	bytes := vary(&state, fileBytes)
	return plan{seed, bytes, totalUS * readsPerMS / 1000 / bytes}
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// makeInput makes a file without a name, which goes away when the program ends.
func makeInput(p plan) *os.File {
	file, err := os.CreateTemp("", "tiny_reads-*")
	check(err)
	check(os.Remove(file.Name()))
	data := make([]byte, p.bytes)
	for at := range data {
		data[at] = byte(mix(p.seed^uint64(at), 2))
	}
	_, err = file.Write(data)
	check(err)
	return file
}

// digestBytes reads byte by byte until the end of the input.
func digestBytes(input io.Reader, digest uint64) uint64 {
	one := make([]byte, 1)
	for {
		_, err := input.Read(one)
		if err == io.EOF {
			return digest
		}
		check(err)
		digest = mix(digest^uint64(one[0]), byteRounds)
	}
}

func runFile(p plan, buffered bool) uint64 {
	file := makeInput(p)
	defer file.Close()
	digest := p.seed
	for range p.passes {
		_, err := file.Seek(0, io.SeekStart)
		check(err)
		if buffered {
			digest = digestBytes(bufio.NewReader(file), digest)
		} else {
			digest = digestBytes(file, digest)
		}
	}
	return digest
}

// send writes messages into the pipe and thinks before each of them.
func send(p plan, pipe *os.File) {
	state := p.seed
	message := make([]byte, messageBytes)
	for number := range totalUS / thinkUS {
		time.Sleep(time.Duration(vary(&state, thinkUS)) * time.Microsecond)
		for at := range message {
			message[at] = byte(number + at)
		}
		_, err := pipe.Write(message)
		check(err)
	}
	check(pipe.Close())
}

func runTwin(p plan) uint64 {
	reader, writer, err := os.Pipe()
	check(err)
	go send(p, writer)
	digest := p.seed
	message := make([]byte, messageBytes)
	for {
		_, err := io.ReadFull(reader, message)
		if err == io.EOF {
			return digest
		}
		check(err)
		digest = mix(digest^uint64(message[0]), messageUS*roundsPerUS)
	}
}

func main() {
	variant, seed := arguments()
	p := makePlan(seed)
	var result uint64
	switch variant {
	case "sick":
		result = runFile(p, false)
	case "fixed":
		result = runFile(p, true)
	case "twin":
		result = runTwin(p)
	}
	fmt.Printf("%016x\n", result)
}

// vary returns 60 % to 140 % of base; state decides.
func vary(state *uint64, base uint64) uint64 {
	*state = *state*6364136223846793005 + 1442695040888963407
	return base * (60 + (*state>>33)%81) / 100
}

// mix does rounds steps of integer mixing, each of which needs the one before it.
func mix(x, rounds uint64) uint64 {
	for ; rounds > 0; rounds-- {
		x = (x^x>>29)*0x9e3779b97f4a7c15 + 1
	}
	return x
}

// arguments reads the variant and the seed, and starts the timer that ends a run that hangs.
func arguments() (string, uint64) {
	if len(os.Args) == 3 {
		variant := os.Args[1]
		seed, err := strconv.ParseUint(os.Args[2], 10, 64)
		if err == nil && (variant == "sick" || variant == "fixed" || variant == "twin") {
			time.AfterFunc(limit, func() { os.Exit(3) })
			return variant, seed
		}
	}
	fmt.Fprintln(os.Stderr, "usage: tiny_reads sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
