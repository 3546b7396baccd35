package main

import (
	"context"
	"io"
)

// key is a key that was pressed: its character, or one of these.
type key rune

const (
	keyUp   key = -1
	keyDown key = -2
	keyQuit key = 'q'

	keyCtrlC key = 3
)

// readKeys passes on what is typed until in ends or ctx does, and then closes to. The kernel of the system hands over what
// one key sends in one piece, so an escape character that ends a piece is the key Escape.
func readKeys(ctx context.Context, in io.Reader, to chan<- key) {
	defer close(to)
	buf := make([]byte, 64)
	for {
		n, err := in.Read(buf)
		for _, k := range keysOf(buf[:n]) {
			select {
			case to <- k:
			case <-ctx.Done():
				return
			}
		}
		if err != nil || n == 0 {
			return
		}
	}
}

// keysOf takes apart what a terminal sends. Sequences that are none of ours are left out as a whole.
func keysOf(typed []byte) []key {
	var keys []key
	for i := 0; i < len(typed); i++ {
		c := typed[i]
		if c != 0x1b || i+1 == len(typed) || typed[i+1] != '[' && typed[i+1] != 'O' {
			if key(c) == keyCtrlC {
				c = byte(keyQuit)
			}
			keys = append(keys, key(c))
			continue
		}
		// The sequence ends with a character from @ on.
		for i += 2; i < len(typed) && typed[i] < '@'; i++ {
		}
		if i < len(typed) && typed[i] == 'A' {
			keys = append(keys, keyUp)
		} else if i < len(typed) && typed[i] == 'B' {
			keys = append(keys, keyDown)
		}
	}
	return keys
}
