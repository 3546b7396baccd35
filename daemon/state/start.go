package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// copied returns the error for a copied state directory: a second kernel that continued its journal would run the agents of
// the first kernel again.
func copied(dir, why string) error {
	return fault.StateCopied.New(`state.copied: %s is a copy: %s; to make a kernel of its own of it, run "pwos restore --here" (its agents are `+
		`not started then; with --agents they are)`, dir, why)
}

// Begin journals the start. In a copied state directory it returns an error.
func (s *State) Begin(cfg *config.Config, here journal.Location) error {
	last := s.Self.Booted()
	now := schema.BootedInput{HostKey: s.HostKey.Public(), Machine: here.Machine, Directory: here.Directory}
	if last == nil {
		now.Instance, now.Epoch = newInstance(), 1
	} else {
		if why := s.copied(last, here); why != "" {
			return copied(cfg.StateDir, why)
		}
		now.Instance, now.Epoch, now.Held = last.Instance, last.Epoch, last.Held
	}
	if cfg.Cluster.Name != "" && cfg.Cluster.Acknowledge == config.Quorum {
		now.Acknowledge = config.Quorum
	}
	err := s.note(cfg, &now) // completes now
	s.Booted = now
	if err != nil && !errors.Is(err, journal.ErrStopped) { // a kernel still starts on a full disk
		s.log.Error("start not journaled", "error", err)
		return nil
	}
	return err
}

// copied returns why the state directory is a copy, or "" if it is that of the last start.
func (s *State) copied(last *schema.BootedInput, here journal.Location) string {
	if where := here.Differs(last.Machine, last.Directory); where != "" {
		return "its last start was " + where
	}
	if s.HostKey == nil || s.HostKey.Public() != last.HostKey {
		return "it has no host key, or another one than its record names"
	}
	return ""
}

// note journals a start.
func (s *State) note(cfg *config.Config, in *schema.BootedInput) error {
	in.Epochs = epochs(s.Self.Booted(), in.Epoch, int64(s.Journal.Head().Seq)+1)
	return record.Boot(s.Journal, s.Self, cfg.Origin, s.Tick, schema.KernelBooted.With(in))
}

// TakeOver journals that this host leads the kernel from now on. The key signs nothing before, since the journal does not
// name it until then.
func (s *State) TakeOver(cfg *config.Config, key string, here journal.Location) (schema.TakeOverInput, error) {
	last := s.Self.Booted()
	if last == nil {
		return schema.TakeOverInput{}, fault.StateDamaged.New("the record of the kernel %s has no start of it, so the key of its host is unknown: check it with %s", cfg.Cluster.Name, quote.Command("pwos", "audit", "verify", "--kernel", cfg.Cluster.Name))
	}
	in := schema.TakeOverInput{Epoch: last.Epoch + 1, HostKey: key, Machine: here.Machine, Directory: here.Directory}
	in.Epochs = epochs(last, in.Epoch, int64(s.Journal.Head().Seq)+1)
	in.Epochs[len(in.Epochs)-1].Continues = last.Acknowledge == config.Quorum
	return in, record.Boot(s.Journal, s.Self, cfg.Origin, s.Tick, schema.KernelTakeOver.With(&in))
}

// MailEpoch returns the epoch that numbers messages to other kernels. An epoch that continues the previous one without a
// loss continues its numbers, so that a message that has arrived is not accepted again.
func (s *State) MailEpoch() int64 {
	all := s.Booted.Epochs
	for i := len(all) - 1; i >= 0; i-- {
		if !all[i].Continues {
			return all[i].Epoch
		}
	}
	return s.Booted.Epoch
}

// epochs returns the epochs of the last start, and the present one if it begins with entry next. Entries before the first
// list belong to epoch 1.
func epochs(last *schema.BootedInput, now, next int64) []schema.Epoch {
	all := []schema.Epoch{{Epoch: 1, FirstSeq: 1}}
	if last != nil && len(last.Epochs) > 0 {
		all = slices.Clone(last.Epochs)
	}
	if all[len(all)-1].Epoch != now {
		all = append(all, schema.Epoch{Epoch: now, FirstSeq: next})
	}
	return all
}

func newInstance() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails: the program would end first
	return hex.EncodeToString(id[:])
}

// Restored is the result of Restore.
type Restored struct {
	StateDir string
	Instance string
	Epoch    int64
	HostKey  string // the public key, as a line of authorized_keys
	Fresh    bool   // the epoch and the key are new
	Held     int    // agents that are not started until Restore allows it
}

// RestoreHere turns a copied state directory into another kernel: see daemon.Restore.
func (s *State) RestoreHere(cfg *config.Config, agents bool) (r Restored, err error) {
	last := s.Self.Booted()
	if last == nil {
		return r, fmt.Errorf("%s cannot be recognized as a copy: no kernel has named itself in its journal yet", cfg.StateDir)
	}
	here, err := journal.Locate(s.Dir)
	if err != nil {
		return r, err
	}
	if s.HostKey, err = access.ReadHostKey(access.HostKeyFile(cfg.StateDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	now := *last
	now.Machine, now.Directory, now.Held = here.Machine, here.Directory, !agents
	path := access.HostKeyFile(cfg.StateDir)
	switch fresh := s.copied(last, here) != ""; {
	case !fresh && !(last.Held && agents):
		return r, fmt.Errorf("%s is no copy: it is the directory of the last start: nothing was changed", cfg.StateDir)
	case fresh:
		// The key is on disk before the entry that names it, and gets its final name afterwards: after a crash in between,
		// the directory is still a copy.
		key, err := access.MakeHostKey(path + ".new")
		if err != nil {
			return r, fmt.Errorf("make host key: %w", err)
		}
		now.Epoch, now.HostKey, r.Fresh = last.Epoch+1, key.Public(), true
	}
	if err := s.note(cfg, &now); err != nil {
		return r, err
	}
	if r.Fresh {
		if err := access.TakeHostKey(path); err != nil {
			return r, fmt.Errorf("rename host key: %w", err)
		}
	}
	r.StateDir, r.Instance, r.Epoch, r.HostKey = cfg.StateDir, now.Instance, now.Epoch, now.HostKey
	if now.Held {
		r.Held = len(s.Processes.Hosted())
	}
	return r, nil
}
