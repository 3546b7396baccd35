package code

import (
	"encoding/binary"
	"fmt"
	"io"
)

// frame is a request to a worker, or its answer: what is asked for or came of it, and two texts.
//
//	request: check or call; the code; the input
//	answer:  a status; the output, or the text of an error; what was written to the console
type frame struct {
	is   byte
	text [2][]byte
}

// What a worker is asked for.
const (
	check byte = iota // whether the code can be registered
	call              // to call its handler
)

// What came of it.
const (
	done       byte = iota // the text is the output
	badCode                // the code cannot be registered: the text begins with line and column, where they are known
	threw                  // the handler threw
	unusable               // the handler returned what is no JSON value
	overMemory             // memory, or the call stack
	overOutput             //
	overTime               //
	statuses
)

const header = 9 // bytes: is, and the length of both texts

// write sends a frame in one piece.
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

// readFrame reads a frame whose texts have at most so many bytes.
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
