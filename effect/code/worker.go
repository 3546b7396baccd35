package code

import (
	"bufio"
	"fmt"
	"math"
	"os"
)

// workerArg is the hidden first argument with which a program that has workers is started as one.
const workerArg = "pwos-code-worker"

// Shim has to be called first, after host.Shim, in main of every program that has workers, and in TestMain of every test that does.
// Started as a worker it does not return; else it returns at once.
func Shim() {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		os.Exit(work(os.Args[2:]))
	}
}

// work answers requests until there are no more.
func work(words []string) int {
	os.Clearenv()
	limits, ok := readLimits(words)
	if !ok {
		fmt.Fprintln(os.Stderr, "this is a part of pwos that it starts by itself")
		return 2
	}
	e, err := newEngine(limits)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pwos code worker:", err)
		return 1
	}
	in := bufio.NewReader(os.Stdin)
	for {
		request, err := readFrame(in, math.MaxInt32, math.MaxInt32)
		if err != nil {
			return 0 // the kernel wants no more, or has ended
		}
		answer, free, err := e.do(&request)
		if err == nil {
			err = answer.write(os.Stdout)
		}
		if err == nil {
			err = free() // while nobody waits
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "pwos code worker:", err)
			return 1
		}
	}
}
