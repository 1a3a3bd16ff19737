// Fault: the program allows itself only one CPU, although several of its threads are ready to
// compute all the time. It sets the mask before the Go runtime starts: it sets the mask of its
// first thread and then executes itself again, which keeps the mask.
// The fixed variant leaves the mask as it is, and is the same in all other respects.
// The twin pins itself to one CPU, too, but has one goroutine with one long chain to compute.
// It is healthy: one thread can use no more than one CPU.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const (
	totalUS     = 4_200_000 // what the sick variant takes in total, about
	pieceUS     = 1_000     // the computing for one piece
	maskWords   = 16        // the length of a CPU mask, for up to 1024 CPUs
	roundsPerUS = 500
	limit       = 30 * time.Second
	// stageVariable tells the program that it has executed itself already.
	stageVariable = "ONE_PROC_STAGE"
)

type cpuMask [maskWords]uint64

type plan struct {
	seed    uint64
	workers uint64
	pieces  uint64
	rounds  uint64
}

func makePlan(seed uint64) plan {
	state := seed
	us := vary(&state, pieceUS)
	return plan{seed, 3 + seed%3, totalUS / us, us * roundsPerUS}
}

// affinity gets or sets the CPU mask of the calling thread.
func affinity(call uintptr, mask *cpuMask) {
	size := unsafe.Sizeof(*mask)
	_, _, errno := syscall.RawSyscall(call, 0, size, uintptr(unsafe.Pointer(mask)))
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "cannot use the CPU mask:", errno)
		os.Exit(1)
	}
}

// pin allows the calling thread only one of the CPUs that it has now; the seed says which one.
func pin(seed uint64) {
	var mask cpuMask
	affinity(syscall.SYS_SCHED_GETAFFINITY, &mask)
	var cpus []int
	for cpu := range maskWords * 64 {
		if mask[cpu/64]>>(cpu%64)&1 == 1 {
			cpus = append(cpus, cpu)
		}
	}
	cpu := cpus[seed%uint64(len(cpus))]
	mask = cpuMask{}
	mask[cpu/64] = 1 << (cpu % 64)
	affinity(syscall.SYS_SCHED_SETAFFINITY, &mask)
}

// restart executes the program again, with procs threads for goroutines.
func restart(procs uint64) {
	os.Setenv("GOMAXPROCS", strconv.FormatUint(procs, 10))
	os.Setenv(stageVariable, "2")
	program, err := os.Executable()
	if err == nil {
		err = syscall.Exec(program, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "cannot start again:", err)
	os.Exit(1)
}

// runWorkers lets the workers take pieces from a common index.
func runWorkers(p plan) uint64 {
	var group sync.WaitGroup
	var total, next atomic.Uint64
	for range p.workers {
		group.Go(func() {
			sum := uint64(0)
			for {
				piece := next.Add(1) - 1
				if piece >= p.pieces {
					break
				}
				sum += mix(p.seed^piece<<16, p.rounds)
			}
			total.Add(sum)
		})
	}
	group.Wait()
	return total.Load()
}

func runTwin(p plan) uint64 {
	value := p.seed
	for range p.pieces {
		value = mix(value, p.rounds)
	}
	return value
}

func main() {
	variant, seed := arguments()
	p := makePlan(seed)
	if os.Getenv(stageVariable) == "" {
		runtime.LockOSThread()
		if variant != "fixed" {
			pin(seed)
		}
		if variant == "twin" {
			p.workers = 1
		}
		restart(p.workers)
	}
	var result uint64
	if variant == "twin" {
		result = runTwin(p)
	} else {
		result = runWorkers(p)
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
	fmt.Fprintln(os.Stderr, "usage: one_proc sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
