// Fault: several goroutines add to one table behind one mutex, and each holds the mutex while it
// computes the value that it adds. So about one of them runs, and the others wait for the mutex.
// The fixed variant gives each goroutine a table of its own and adds the tables up at the end.
// The twin is a pool of goroutines that wait on a channel for work that comes rarely.
// It is healthy: there is nothing to do while they wait, and no worker waits for another one.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	totalUS     = 4_200_000 // what the sick variant takes in total, about
	lockedUS    = 80        // the computing for one item under the mutex
	outsideUS   = 4         // the computing for one item outside of the mutex
	slots       = 256       // entries of the table
	pool        = 4         // workers of the twin
	arrivalUS   = 12_000    // the mean time between two jobs of the twin
	jobUS       = 700       // the computing for one job of the twin
	roundsPerUS = 500
	limit       = 30 * time.Second
)

type table [slots]uint64

type plan struct {
	seed         uint64
	workers      uint64
	items        uint64 // per goroutine
	lockedRounds uint64
}

func makePlan(seed uint64) plan {
	state := seed
	us := vary(&state, lockedUS)
	workers := 4 + seed%4
	return plan{seed, workers, totalUS / (us * workers), us * roundsPerUS}
}

// key does the part of the work that comes before the table.
func (p plan) key(worker, item uint64) uint64 {
	return mix(p.seed^worker<<32^item, outsideUS*roundsPerUS)
}

// add computes the value of key and adds it to the table.
func (p plan) add(t *table, key uint64) {
	t[key%slots] += mix(key, p.lockedRounds)
}

func (t *table) digest() uint64 {
	digest := uint64(0)
	for _, value := range t {
		digest = mix(digest^value, 2)
	}
	return digest
}

func runSick(p plan) uint64 {
	var shared table
	var lock sync.Mutex
	var group sync.WaitGroup
	for worker := range p.workers {
		group.Go(func() {
			for item := range p.items {
				key := p.key(worker, item)
				lock.Lock()
				p.add(&shared, key)
				lock.Unlock()
			}
		})
	}
	group.Wait()
	return shared.digest()
}

func runFixed(p plan) uint64 {
	tables := make([]table, p.workers)
	var group sync.WaitGroup
	for worker := range p.workers {
		group.Go(func() {
			for item := range p.items {
				p.add(&tables[worker], p.key(worker, item))
			}
		})
	}
	group.Wait()
	var total table
	for i := range tables {
		for slot, value := range tables[i] {
			total[slot] += value
		}
	}
	return total.digest()
}

func runTwin(p plan) uint64 {
	jobs := make(chan uint64)
	sums := make(chan uint64)
	for range pool {
		go func() {
			sum := uint64(0)
			for job := range jobs {
				sum += mix(job, jobUS*roundsPerUS)
			}
			sums <- sum
		}()
	}
	state := p.seed
	for job := range uint64(totalUS / arrivalUS) {
		time.Sleep(time.Duration(vary(&state, arrivalUS)) * time.Microsecond)
		jobs <- p.seed ^ job
	}
	close(jobs)
	total := uint64(0)
	for range pool {
		total += <-sums
	}
	return total
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
	fmt.Fprintln(os.Stderr, "usage: mutex sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
