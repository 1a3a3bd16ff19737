// Fault: the main goroutine gives a job to a worker and then asks for its end in a loop that
// sleeps for 1 ms each time. The next job needs the result, so the worker idles until then.
// The fixed variant gets the result through a channel, which wakes the main goroutine at once.
// The twin has a ticker with about the same period, and it does some work at each tick.
// It is healthy: the clock decides when it works, and no result waits for the next tick.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

const (
	totalUS     = 4_200_000 // what the sick variant takes in total, about
	jobUS       = 400       // the computing for one job
	slackUS     = 100       // what a sleep takes longer than it should
	tickWorkUS  = 250       // the computing for one tick of the twin
	roundsPerUS = 500
	pollPeriod  = time.Millisecond
	tickPeriod  = 1_500 * time.Microsecond
	limit       = 30 * time.Second
)

type plan struct {
	seed      uint64
	jobs      uint64
	jobRounds uint64
}

func makePlan(seed uint64) plan {
	state := seed
	us := vary(&state, jobUS)
	polled := uint64(pollPeriod/time.Microsecond) + slackUS
	return plan{seed, totalUS / polled, us * roundsPerUS}
}

func runSick(p plan) uint64 {
	var done atomic.Bool
	var result uint64
	jobs := make(chan uint64)
	go func() {
		for job := range jobs {
			result = mix(job, p.jobRounds)
			done.Store(true)
		}
	}()
	value := p.seed
	for job := range p.jobs {
		done.Store(false)
		jobs <- value ^ job
		for !done.Load() {
			time.Sleep(pollPeriod)
		}
		value = result
	}
	close(jobs)
	return value
}

func runFixed(p plan) uint64 {
	jobs := make(chan uint64)
	results := make(chan uint64)
	go func() {
		for job := range jobs {
			results <- mix(job, p.jobRounds)
		}
	}()
	value := p.seed
	for job := range p.jobs {
		jobs <- value ^ job
		value = <-results
	}
	close(jobs)
	return value
}

func runTwin(p plan) uint64 {
	state := p.seed
	period := time.Duration(vary(&state, uint64(tickPeriod)))
	rounds := vary(&state, tickWorkUS) * roundsPerUS
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	value := p.seed
	for range totalUS * time.Microsecond / period {
		<-ticker.C
		value = mix(value, rounds)
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
	fmt.Fprintln(os.Stderr, "usage: sleep_poll sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
