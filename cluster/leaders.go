package cluster

import (
	"fmt"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/journal"
)

// leaders checks along a stream which host leads the kernel. A key is valid only for the entries of its epoch: from the
// entry that names it, Kernel.Booted or Kernel.TakeOver, to the next one that names another. The members file must list the
// key, or a listed key must sign later entries of the same chain.
type leaders struct {
	trusted map[string]bool // keys that the members file lists, canonical
	current *journal.Leader // nil: no entry has named a key yet
	early   string          // a key that signed before the entry that names it; "": none
	signer  string          // key of the last checkpoint
	vouched uint64          // the last entry that a listed key has signed
}

func newLeaders(keys []access.PublicKey, current *journal.Leader) *leaders {
	l := &leaders{trusted: map[string]bool{}, current: current}
	for _, key := range keys {
		l.trusted[key.String()] = true
	}
	return l
}

// entry checks the next entry. It returns what is wrong with the host key that the entry names, or "".
func (l *leaders) entry(record *journal.Record) (reason string) {
	next := journal.LeaderOf(record)
	if next == nil {
		return ""
	}
	if was := l.current; was != nil && (next.Epoch < was.Epoch || next.Epoch == was.Epoch && (next.TakesOver || next.HostKey != was.HostKey)) {
		return fmt.Sprintf("entry %d names a host key for the epoch %d, which entry %d had begun", record.Seq, next.Epoch, was.Seq)
	}
	// A restored kernel signs with its new key the entries that its copy had not sent before. A host that takes over
	// appends nothing before the entry that names it.
	if l.early != "" && (next.TakesOver || canonical(next.HostKey) != l.early) {
		return l.unnamed(record.Seq)
	}
	l.early, l.current = "", next
	return ""
}

// checkpoint checks the signature of the next message's checkpoint. It returns what is wrong with it, or "".
func (l *leaders) checkpoint(c journal.Checkpoint) (reason string) {
	if err := c.Verify(); err != nil {
		return err.Error()
	}
	switch {
	case l.current == nil || canonical(l.current.HostKey) == c.Key:
	case l.early == "" || l.early == c.Key:
		l.early = c.Key
	default:
		return l.unnamed(c.Seq)
	}
	l.signer = c.Key
	if l.trusted[c.Key] {
		l.vouched = c.Seq
	}
	return ""
}

// end returns what is wrong with a stream that ends after entry last, or "".
func (l *leaders) end(last uint64) (reason string) {
	if l.early != "" {
		return l.unnamed(last + 1)
	}
	return ""
}

func (l *leaders) unnamed(before uint64) string {
	return fmt.Sprintf("entries before %d are signed with the key %s, which no entry names for the epoch %d", before, fingerprint(l.early), l.current.Epoch)
}

// canonical returns a key as a checkpoint has it.
func canonical(line string) string {
	key, _, err := access.ParsePublicKey(line)
	if err != nil {
		return line
	}
	return key.String()
}

func fingerprint(line string) string {
	key, _, err := access.ParsePublicKey(line)
	if err != nil {
		return line
	}
	return key.Fingerprint()
}
