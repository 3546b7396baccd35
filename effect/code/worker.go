package code

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// workerArg is the hidden first argument that starts the program as a worker.
const workerArg = "pwos-code-worker"

// Shim runs a worker, and then does not return, if the arguments ask for that. Every program with workers must call it
// first in main, after host.Shim; tests with workers in TestMain.
func Shim() {
	if len(os.Args) > 1 && os.Args[1] == workerArg {
		os.Exit(work(strings.Join(os.Args[2:], " ")))
	}
}

// work answers requests until the input ends, and returns the exit code.
func work(word string) int {
	os.Clearenv()
	limits, err := readLimits(word)
	if err != nil {
		fmt.Fprintln(os.Stderr, "this part of pwos is only started by pwos")
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
			return 0 // the kernel has closed it, or has ended
		}
		answer, free, err := e.do(&request)
		if err == nil {
			err = answer.write(os.Stdout)
		}
		if err == nil {
			err = free() // after the answer, so that the caller does not wait for it
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "pwos code worker:", err)
			return 1
		}
	}
}

// frame is a request to a worker, or its answer: a kind or status, and texts.
//
//	request: check or call; the code; the input
//	answer:  a status; the output, or the text of an error; what was written to the console
type frame struct {
	is   byte
	text [2][]byte
}

// The kinds of a request.
const (
	check byte = iota // whether the code can be registered
	call              // to call its handler
)

// Statuses of an answer.
const (
	done       byte = iota // the text is the output
	badCode                // the code cannot be registered: the text begins with line and column, if they are known
	threw                  // the handler threw
	unusable               // the handler did not return a JSON value
	overMemory             // memory, or the call stack
	overOutput             //
	overTime               //
	statuses
)

const header = 9 // size of the header: the kind, and the length of both texts

// write sends a frame with one write.
func (f *frame) write(w io.Writer) error {
	b := make([]byte, 0, header+len(f.text[0])+len(f.text[1]))
	b = append(b, f.is)
	for _, text := range f.text {
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
	}
	for _, text := range f.text {
		b = append(b, text...)
	}
	_, err := w.Write(b)
	return err
}

// readFrame reads a frame whose texts have at most these numbers of bytes.
func readFrame(r io.Reader, most ...int64) (f frame, err error) {
	var head [header]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	f.is = head[0]
	for i := range f.text {
		n := binary.BigEndian.Uint32(head[1+4*i:])
		if int64(n) > most[i] {
			return f, fmt.Errorf("a frame with a text of %d bytes", n)
		}
		f.text[i] = make([]byte, n)
	}
	for i := range f.text {
		if _, err := io.ReadFull(r, f.text[i]); err != nil {
			return f, fmt.Errorf("read frame: %w", err)
		}
	}
	return f, nil
}
