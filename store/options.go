package store

import (
	"github.com/promptware-os/pwos/journal"
)

// Options say what a Store is checked against, and who hears of trouble. The zero Options check nothing and tell nobody.
type Options struct {
	// Holds reports whether the journal has this very entry, durable. Open asks it for every snapshot and for the end of
	// the index, and drops what the journal does not have. An error of it fails Open. InJournal makes one; nil means that
	// nothing is asked.
	Holds func(journal.Head) (bool, error)

	// Trouble is told of what was dropped and made anew, and why: errors that wrap ErrDamaged, ErrFormat or ErrForeign.
	// It is called on the goroutine that met the trouble and must not call the Store. nil means that nobody is told.
	Trouble func(error)
}

func (o Options) withDefaults() Options {
	if o.Holds == nil {
		o.Holds = func(journal.Head) (bool, error) { return true, nil }
	}
	if o.Trouble == nil {
		o.Trouble = func(error) {}
	}
	return o
}
