// Fault: each goroutine gets a fixed slice of the items, and the items of one slice cost several
// times as much as the others. One goroutine works long after the other ones have ended.
// The fixed variant lets each goroutine take the next item from a common atomic index.
// The twin divides items of equal cost into two fixed slices, one per goroutine.
// It is healthy: both goroutines compute from the start of the run to its end.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	totalUS     = 4_200_000 // what the sick variant takes in total, about
	sliceItems  = 150       // items per slice
	costFactor  = 8         // the cost of an item in the costly slice; another item costs 1
	twinWorkers = 2
	roundsPerUS = 500
	limit       = 30 * time.Second
)

type plan struct {
	seed    uint64
	workers uint64
	costs   []uint64 // the rounds of each item
}

// makePlan makes one slice of items per worker; the items of one slice cost factor times as much.
func makePlan(seed, workers, factor uint64) plan {
	state := seed
	items := vary(&state, sliceItems)
	costly := vary(&state, 100) % workers
	// Until the cheap slices end, the workers share two CPUs.
	wallInHalfSlices := workers + 2*(factor-1)
	rounds := totalUS * roundsPerUS * 2 / (wallInHalfSlices * items)
	p := plan{seed, workers, make([]uint64, workers*items)}
	for item := range p.costs {
		p.costs[item] = rounds
		if uint64(item)/items == costly {
			p.costs[item] *= factor
		}
	}
	return p
}

func (p plan) process(item int) uint64 {
	return mix(p.seed^uint64(item)<<16, p.costs[item])
}

func runSlices(p plan) uint64 {
	var group sync.WaitGroup
	var total atomic.Uint64
	length := len(p.costs) / int(p.workers)
	for worker := range int(p.workers) {
		group.Go(func() {
			sum := uint64(0)
			for item := worker * length; item < (worker+1)*length; item++ {
				sum += p.process(item)
			}
			total.Add(sum)
		})
	}
	group.Wait()
	return total.Load()
}

func runIndex(p plan) uint64 {
	var group sync.WaitGroup
	var total, next atomic.Uint64
	for range p.workers {
		group.Go(func() {
			sum := uint64(0)
			for {
				item := int(next.Add(1) - 1)
				if item >= len(p.costs) {
					break
				}
				sum += p.process(item)
			}
			total.Add(sum)
		})
	}
	group.Wait()
	return total.Load()
}

func main() {
	variant, seed := arguments()
	workers := 2 + seed%3
	var result uint64
	switch variant {
	case "sick":
		result = runSlices(makePlan(seed, workers, costFactor))
	case "fixed":
		result = runIndex(makePlan(seed, workers, costFactor))
	case "twin":
		result = runSlices(makePlan(seed, twinWorkers, 1))
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
	fmt.Fprintln(os.Stderr, "usage: straggler sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
