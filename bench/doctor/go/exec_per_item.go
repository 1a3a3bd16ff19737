// Fault: the program starts the command "test" for each item, only to compare two numbers. The
// start and the end of a process cost far more than the comparison and the work on the item.
// The fixed variant compares the numbers in its own process.
// The twin starts two children of this program, which compute until the end of the run.
// It is healthy: it starts as many children as there are CPUs, and each of them lives long.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	totalUS     = 4_200_000 // what the sick variant takes in total, about
	itemUS      = 50        // the computing for one item
	commandUS   = 1_000     // what one command takes
	smallBelow  = 500       // "test" compares a number below 1000 with this one
	children    = 2         // the children of the twin
	childName   = "child"   // the variant that a child of the twin gets
	roundsPerUS = 500
	limit       = 30 * time.Second
)

// variants holds what the first argument may be; only the twin itself uses the last one.
var variants = []string{"sick", "fixed", "twin", childName}

type plan struct {
	seed   uint64
	items  uint64
	rounds uint64
}

func makePlan(seed uint64) plan {
	state := seed
	us := vary(&state, itemUS)
	return plan{seed, vary(&state, totalUS/(commandUS+us)), us * roundsPerUS}
}

// check ends the program if there is an error.
func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// isSmallByCommand lets a child process compare the numbers.
func isSmallByCommand(number uint64) bool {
	err := exec.Command("test", strconv.FormatUint(number, 10), "-lt",
		strconv.Itoa(smallBelow)).Run()
	var status *exec.ExitError
	if errors.As(err, &status) && status.ExitCode() == 1 {
		return false
	}
	check(err)
	return true
}

func isSmall(number uint64) bool {
	return number < smallBelow
}

// run works on the items one after the other.
func run(p plan, isSmall func(uint64) bool) uint64 {
	value := p.seed
	for item := range p.items {
		value = mix(value^item, p.rounds)
		if isSmall(value % 1000) {
			value++
		}
	}
	return value
}

// startChild starts one child of the twin. The kernel kills it if this process dies first.
func startChild(p plan, number uint64) (*exec.Cmd, *strings.Builder) {
	program, err := os.Executable()
	check(err)
	output := &strings.Builder{}
	child := exec.Command(program, childName, strconv.FormatUint(p.seed+number, 10))
	child.Stdout = output
	child.Stderr = os.Stderr
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	check(child.Start())
	return child, output
}

func runTwin(p plan) uint64 {
	// The death signal belongs to the thread that starts the child.
	runtime.LockOSThread()
	var running [children]*exec.Cmd
	var outputs [children]*strings.Builder
	for number := range running {
		running[number], outputs[number] = startChild(p, uint64(number))
	}
	sum := uint64(0)
	for number, child := range running {
		check(child.Wait())
		value, err := strconv.ParseUint(strings.TrimSpace(outputs[number].String()), 16, 64)
		check(err)
		sum += value
	}
	return sum
}

func main() {
	variant, seed := arguments()
	p := makePlan(seed)
	var result uint64
	switch variant {
	case "sick":
		result = run(p, isSmallByCommand)
	case "fixed":
		result = run(p, isSmall)
	case "twin":
		result = runTwin(p)
	case childName:
		result = mix(seed, totalUS*roundsPerUS)
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
		if err == nil && slices.Contains(variants, variant) {
			time.AfterFunc(limit, func() { os.Exit(3) })
			return variant, seed
		}
	}
	fmt.Fprintln(os.Stderr, "usage: exec_per_item sick|fixed|twin SEED")
	os.Exit(2)
	return "", 0
}
