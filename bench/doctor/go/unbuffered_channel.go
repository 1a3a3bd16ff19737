// Fault: two goroutines, each on a thread of its own, hand each item to and fro through channels
// without a buffer. Each does a few microseconds of work and then waits for the other one, so
// never more than one of the two threads runs.
// The fixed variant exchanges batches and prepares a batch while the partner finishes the last.
// The twin is a client that sends a request, gets the reply and then thinks for some milliseconds.
// It is healthy: the think time fills the run, and a faster hand-over would not shorten it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
)

const (
	totalUS     = 4_200_000 // what the sick variant takes in total, about
	workUS      = 4         // the computing of each goroutine for one item
	exchangeUS  = 20        // what one exchange costs, there and back
	batchItems  = 1_000     // items per batch in the fixed variant
	thinkUS     = 3_000     // the mean think time of the client in the twin
	replyUS     = 40        // the computing for one reply in the twin
	roundsPerUS = 500
	limit       = 30 * time.Second
)

type plan struct {
	seed   uint64
	items  uint64
	rounds uint64
}

func makePlan(seed uint64) plan {
	state := seed
	// In tenths of a microsecond, because the work is that short.
	tenths := vary(&state, workUS*10)
	return plan{seed, totalUS / (2*tenths/10 + exchangeUS), tenths * roundsPerUS / 10}
}

// prepare does the first half of the work on an item.
func (p plan) prepare(item uint64) uint64 {
	return mix(p.seed^item<<8, p.rounds)
}

// finish does the second half of the work on an item.
func (p plan) finish(value uint64) uint64 {
	return mix(^value, p.rounds)
}

// finishItems is the partner in the sick variant.
func (p plan) finishItems(values <-chan uint64, results chan<- uint64) {
	runtime.LockOSThread()
	for value := range values {
		results <- p.finish(value)
	}
}

func runSick(p plan) uint64 {
	values := make(chan uint64)
	results := make(chan uint64)
	go p.finishItems(values, results)
	sum := uint64(0)
	for item := range p.items {
		values <- p.prepare(item)
		sum += <-results
	}
	close(values)
	return sum
}

// finishBatches is the partner in the fixed variant; it sends one sum for each batch.
func (p plan) finishBatches(batches <-chan []uint64, sums chan<- uint64) {
	runtime.LockOSThread()
	for batch := range batches {
		sum := uint64(0)
		for _, value := range batch {
			sum += p.finish(value)
		}
		sums <- sum
	}
}

func runFixed(p plan) uint64 {
	batches := make(chan []uint64, 1)
	sums := make(chan uint64, 1)
	go p.finishBatches(batches, sums)
	sum := uint64(0)
	for start := uint64(0); start < p.items; start += batchItems {
		end := min(p.items, start+batchItems)
		batch := make([]uint64, 0, batchItems)
		for item := start; item < end; item++ {
			batch = append(batch, p.prepare(item))
		}
		batches <- batch
		// One batch stays with the partner while this goroutine prepares the next.
		if start > 0 {
			sum += <-sums
		}
	}
	close(batches)
	return sum + <-sums
}

func runTwin(p plan) uint64 {
	requests := make(chan uint64)
	replies := make(chan uint64)
	go func() {
		runtime.LockOSThread()
		for request := range requests {
			replies <- mix(request, replyUS*roundsPerUS)
		}
	}()
	state := p.seed
	value := p.seed
	for range totalUS / thinkUS {
		requests <- value
		value = <-replies
		time.Sleep(time.Duration(vary(&state, thinkUS)) * time.Microsecond)
	}
	close(requests)
	return value
}

func main() {
	variant, seed := arguments()
	p := makePlan(seed)
	runtime.LockOSThread()
	var result uint64
	switch variant {
	case "sick":
		result = runSick(p)
	case "fixed":
		result = runFixed(p)
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
	fmt.Fprintln(os.Stderr, "usage: unbuffered_channel sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
