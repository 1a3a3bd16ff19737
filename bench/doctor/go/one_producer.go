// Fault: the main goroutine computes the input of every item by itself, one item after the other.
// Some workers process an item in a fraction of that time and wait for the channel.
// The fixed variant lets the workers compute the input, too; no item needs another item.
// The twin has one goroutine that computes one long chain.
// It is healthy: each step of the chain needs the step before it, so there is nothing to share.
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
	inputUS     = 400       // the computing for the input of one item
	processUS   = 50        // the computing for the processing of one item
	queueItems  = 16        // items that wait in the channel at most
	roundsPerUS = 500
	limit       = 30 * time.Second
)

type plan struct {
	seed          uint64
	workers       uint64
	items         uint64
	inputRounds   uint64
	processRounds uint64
}

func makePlan(seed uint64) plan {
	state := seed
	us := vary(&state, inputUS)
	process := vary(&state, processUS) * roundsPerUS
	return plan{seed, 2 + seed%3, totalUS / us, us * roundsPerUS, process}
}

func (p plan) input(item uint64) uint64 {
	return mix(p.seed^item<<16, p.inputRounds)
}

func (p plan) process(input uint64) uint64 {
	return mix(^input, p.processRounds)
}

// runWorkers runs work in each of the workers and adds up the results.
func (p plan) runWorkers(work func() uint64) *sumGroup {
	group := &sumGroup{}
	for range p.workers {
		group.wait.Go(func() { group.sum.Add(work()) })
	}
	return group
}

type sumGroup struct {
	wait sync.WaitGroup
	sum  atomic.Uint64
}

func (g *sumGroup) total() uint64 {
	g.wait.Wait()
	return g.sum.Load()
}

func runSick(p plan) uint64 {
	inputs := make(chan uint64, queueItems)
	group := p.runWorkers(func() uint64 {
		sum := uint64(0)
		for input := range inputs {
			sum += p.process(input)
		}
		return sum
	})
	for item := range p.items {
		inputs <- p.input(item)
	}
	close(inputs)
	return group.total()
}

func runFixed(p plan) uint64 {
	var next atomic.Uint64
	group := p.runWorkers(func() uint64 {
		sum := uint64(0)
		for {
			item := next.Add(1) - 1
			if item >= p.items {
				return sum
			}
			sum += p.process(p.input(item))
		}
	})
	return group.total()
}

func runTwin(p plan) uint64 {
	value := p.seed
	for range p.items {
		value = mix(value, p.inputRounds)
	}
	return value
}

func main() {
	variant, seed := arguments()
	p := makePlan(seed)
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
	fmt.Fprintln(os.Stderr, "usage: one_producer sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
