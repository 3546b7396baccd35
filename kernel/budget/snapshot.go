package budget

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/promptware-os/pwos/kernel"
)

// Kinds of chunks. 0 was that of accounts without Asked.
const (
	chunkRequests = 1
	chunkEnded    = 2
	chunkAccounts = 3
)

// chunkSize is how many accounts, requests or PIDs a chunk holds.
const chunkSize = 1000

// errChunk says that a chunk is not what Snapshot wrote.
var errChunk = errors.New("restore ledger: a chunk cannot be read")

// Snapshot returns a function that writes the ledger as it is now, by ascending PID and entry.
func (l *Ledger) Snapshot() func(write func(chunk []byte) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	accounts, requests, ended := l.books.accounts.Copy(), l.books.requests.Copy(), slices.Clone(l.books.ended)
	return func(write func(chunk []byte) error) error {
		err := writeChunks(write, chunkAccounts, accounts.Values(), func(b []byte, a *account) []byte {
			b = appendAll(b, a.PID, a.Parent, a.Deadline, a.flags())
			for _, n := range []amounts{a.Given, a.Asked, a.Spent, a.Reserved, a.Below} {
				b = appendAll(b, n[:]...)
			}
			return b
		})
		if err == nil {
			err = writeChunks(write, chunkRequests, requests.Values(), func(b []byte, r request) []byte {
				return appendAll(appendAll(appendAll(b, int64(r.Seq)), r.Payers[:]...), r.Held[:]...)
			})
		}
		if err == nil {
			err = writeChunks(write, chunkEnded, ended, func(b []byte, pid int64) []byte { return appendAll(b, pid) })
		}
		if err != nil {
			return fmt.Errorf("snapshot ledger: %w", err)
		}
		return nil
	}
}

func writeChunks[T any](write func(chunk []byte) error, kind byte, all []T, add func([]byte, T) []byte) error {
	for part := range slices.Chunk(all, chunkSize) {
		chunk := []byte{kind}
		for _, one := range part {
			chunk = add(chunk, one)
		}
		if err := write(chunk); err != nil {
			return err
		}
	}
	return nil
}

func appendAll(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// flags are the kinds of which an account has any, a bit each, and behind them whether its process is gone.
func (a *account) flags() (f int64) {
	for k, limited := range a.Limited {
		if limited {
			f |= 1 << k
		}
	}
	if a.Ended {
		f |= 1 << kinds
	}
	return f
}

// Restore adds a chunk of a snapshot.
func (l *Ledger) Restore(chunk []byte) error {
	if len(chunk) == 0 {
		return errChunk
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := kernel.ChunkReader{Rest: chunk[1:]}
	for len(r.Rest) > 0 && !r.Bad {
		switch chunk[0] {
		case chunkAccounts:
			a := readAccount(&r)
			l.books.accounts.Set(a.PID, a)
		case chunkRequests:
			one := request{Seq: uint64(r.Number()), Payers: readAmounts(&r), Held: readAmounts(&r)}
			l.books.requests.Set(one.Seq, one)
		case chunkEnded:
			l.books.ended = append(l.books.ended, r.Number())
		default:
			return errChunk
		}
	}
	if r.Bad {
		return errChunk
	}
	l.fresh = true
	l.count()
	return nil
}

func readAccount(r *kernel.ChunkReader) *account {
	a := &account{PID: r.Number(), Parent: r.Number(), Deadline: r.Number()}
	flags := r.Number()
	for k := range a.Limited {
		a.Limited[k] = flags&(1<<k) != 0
	}
	a.Ended = flags&(1<<kinds) != 0
	a.Given, a.Asked = readAmounts(r), readAmounts(r)
	a.Spent, a.Reserved, a.Below = readAmounts(r), readAmounts(r), readAmounts(r)
	return a
}

func readAmounts(r *kernel.ChunkReader) (n amounts) {
	for k := range n {
		n[k] = r.Number()
	}
	return n
}
