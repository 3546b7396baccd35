package budget

import (
	"encoding/json"
	"fmt"
	"slices"
)

// chunk is a part of a snapshot.
type chunk struct {
	Accounts []*account `json:"accounts,omitempty"`
	Requests []request  `json:"requests,omitempty"`
	Ended    []int64    `json:"ended,omitempty"`
}

// chunkAccounts is how many accounts a chunk holds.
const chunkAccounts = 1000

// Snapshot returns a function that writes the ledger as it is now: the accounts by ascending PID, then the rest.
func (l *Ledger) Snapshot() func(write func(chunk []byte) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	accounts, requests, ended := l.books.accounts.Copy(), l.books.requests.Copy(), slices.Clone(l.books.ended)
	return func(write func(chunk []byte) error) error {
		parts := []chunk{{Requests: requests.Values(), Ended: ended}}
		for part := range slices.Chunk(accounts.Values(), chunkAccounts) {
			parts = append(parts, chunk{Accounts: part})
		}
		for _, part := range parts {
			text, err := json.Marshal(part)
			if err == nil {
				err = write(text)
			}
			if err != nil {
				return fmt.Errorf("snapshot ledger: %w", err)
			}
		}
		return nil
	}
}

// Restore adds a chunk of a snapshot.
func (l *Ledger) Restore(text []byte) error {
	var part chunk
	if err := json.Unmarshal(text, &part); err != nil {
		return fmt.Errorf("restore ledger: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, a := range part.Accounts {
		if a == nil {
			return fmt.Errorf("restore ledger: an account is null")
		}
		l.books.accounts.Set(a.PID, a)
	}
	for _, r := range part.Requests {
		l.books.requests.Set(r.Seq, r)
	}
	l.books.ended = append(l.books.ended, part.Ended...)
	l.fresh = true
	l.inUse.Store(l.books.accounts.Len() > 0)
	return nil
}
