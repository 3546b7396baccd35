package budget

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/promptware-os/pwos/kernel"
)

// Kinds of entries.
const (
	entryAccount = 1
	entryRequest = 2
	entryEnded   = 3
)

// errChunk says that a chunk is not what Snapshot wrote.
var errChunk = errors.New("restore ledger: a chunk cannot be read")

// Snapshot returns a function that writes the ledger as it is now: accounts by ascending PID,
// requests by entry, then the PIDs of the ended, each entry as numbers with its kind before them.
func (l *Ledger) Snapshot() func(write func(chunk []byte) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	accounts, requests, ended := l.books.accounts.Copy(), l.books.requests.Copy(), slices.Clone(l.books.ended)
	return func(write func(chunk []byte) error) error {
		w := &kernel.ChunkWriter{Write: write}
		accounts.Scan(func(_ int64, a *account) bool {
			w.Chunk = appendAll(w.Chunk, entryAccount, a.PID, a.Parent, a.Deadline, a.flags())
			for _, n := range []amounts{a.Given, a.Asked, a.Spent, a.Reserved, a.Below} {
				w.Chunk = appendAll(w.Chunk, n[:]...)
			}
			return w.Cut()
		})
		requests.Scan(func(_ uint64, r request) bool {
			w.Chunk = appendAll(appendAll(appendAll(w.Chunk, entryRequest, int64(r.Seq)), r.Payers[:]...), r.Held[:]...)
			return w.Cut()
		})
		for _, pid := range ended {
			w.Chunk = appendAll(w.Chunk, entryEnded, pid)
		}
		return w.Flush()
	}
}

func appendAll(b []byte, numbers ...int64) []byte {
	for _, n := range numbers {
		b = binary.AppendVarint(b, n)
	}
	return b
}

// flags has a bit for each kind that an account has, followed by one for an ended process.
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
	l.mu.Lock()
	defer l.mu.Unlock()
	r := kernel.ChunkReader{Rest: chunk}
	for len(r.Rest) > 0 && !r.Bad {
		switch r.Number() {
		case entryAccount:
			a := readAccount(&r)
			l.books.accounts.Set(a.PID, a)
		case entryRequest:
			one := request{Seq: uint64(r.Number()), Payers: readAmounts(&r), Held: readAmounts(&r)}
			l.books.requests.Set(one.Seq, one)
		case entryEnded:
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
