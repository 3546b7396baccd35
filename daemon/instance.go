package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/sshauth"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// copied refuses a state directory that is a copy: a second kernel that went on from its record would run the agents of the first
// one a second time.
func copied(dir, why string) error {
	return fault.StateCopied.New(`state.copied: %s is a copy: %s; to make a kernel of its own of it, run "pwos restore --here" (its agents are `+
		`not started then; with --agents they are)`, dir, why)
}

// begin journals the start, or refuses it in a copy.
func (s *state) begin(cfg *config.Config, here journal.Location) error {
	last := s.self.Booted()
	now := schema.BootedInput{HostKey: s.host.Public(), Machine: here.Machine, Directory: here.Directory}
	if last == nil {
		now.Instance, now.Epoch = newInstance(), 1
	} else {
		if why := s.copied(last, here); why != "" {
			return copied(cfg.StateDir, why)
		}
		now.Instance, now.Epoch, now.Held = last.Instance, last.Epoch, last.Held
	}
	s.booted = now
	err := s.note(cfg, &now)
	if err != nil && !errors.Is(err, journal.ErrStopped) { // as on a full disk, on which a kernel starts
		s.log.Error("start not journaled", "error", err)
		return nil
	}
	return err
}

// copied says why the state is a copy of what the last start has left, "" where it is that.
func (s *state) copied(last *schema.BootedInput, here journal.Location) string {
	if where := here.Differs(last.Machine, last.Directory); where != "" {
		return "its last start was " + where
	}
	if s.host == nil || s.host.Public() != last.HostKey {
		return "it has no host key, or another one than its record names"
	}
	return ""
}

// held reports whether the agents of the epoch before are not to be started.
func (d *Daemon) held() bool { return d.state.booted.Held }

const heldAgents = "agents of the epoch before are held: to let them start, end the kernel, then run \"pwos restore --here --agents\""

// note journals a start.
func (s *state) note(cfg *config.Config, in *schema.BootedInput) error {
	return actors.Boot(s.journal, s.self, cfg.Origin, s.tick, schema.KernelBooted.With(in))
}

func newInstance() string {
	var id [16]byte
	_, _ = rand.Read(id[:]) // it never fails: the program ends first
	return hex.EncodeToString(id[:])
}

// Restored is what Restore has made of a state directory.
type Restored struct {
	StateDir string
	Instance string
	Epoch    int64
	HostKey  string // the public one, as a line of authorized_keys
	Fresh    bool   // the epoch and the key are new
	Held     int    // agents that are not started until Restore is told to
}

// Restore makes a kernel of its own of a copied state directory: a new epoch with a new host key, which the next entry of the
// record names. The programs of its agents are held where agents is false; called again with it, they are let go. args
// are the daemon's flags. No daemon may run on the directory.
func Restore(ctx context.Context, args []string, getenv func(string) string, stderr io.Writer, agents bool) (r Restored, err error) {
	cfg, _, err := config.Settings(args, getenv, io.Discard, Version())
	if err != nil {
		return r, err
	}
	if cfg.Origin, err = cfg.Principal(); err != nil {
		return r, err
	}
	cfg.Log.Level = max(cfg.Log.Level, slog.LevelWarn)
	if err := unixsock.CheckPrivateDir(cfg.StateDir); err != nil {
		return r, err
	}
	// Unsigned: the key of the epoch before is not this one's to sign with.
	s, err := openState(ctx, &cfg, nil, host.Means{}, logging.New(stderr, logForm(&cfg, getenv)))
	if errors.Is(err, journal.ErrLocked) {
		return r, fmt.Errorf("a kernel runs on %s: end it with \"pwos shutdown\" first: %w", cfg.StateDir, err)
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	return s.restoreHere(&cfg, agents)
}

func (s *state) restoreHere(cfg *config.Config, agents bool) (r Restored, err error) {
	last := s.self.Booted()
	if last == nil {
		return r, fmt.Errorf("%s is no copy that can be told: no kernel has named itself in its record yet", cfg.StateDir)
	}
	here, err := journal.Locate(s.dir)
	if err != nil {
		return r, err
	}
	if s.host, err = sshauth.ReadHostKey(sshauth.HostKeyFile(cfg.StateDir)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	now := *last
	now.Machine, now.Directory, now.Held = here.Machine, here.Directory, !agents
	path := sshauth.HostKeyFile(cfg.StateDir)
	switch fresh := s.copied(last, here) != ""; {
	case !fresh && !(last.Held && agents):
		return r, fmt.Errorf("%s is no copy: it is the directory of the last start: nothing was changed", cfg.StateDir)
	case fresh:
		// On disk before the entry that names it, and in its place after: a crash in between leaves a copy.
		key, err := sshauth.MakeHostKey(path + ".new")
		if err != nil {
			return r, fmt.Errorf("make host key: %w", err)
		}
		now.Epoch, now.HostKey, r.Fresh = last.Epoch+1, key.Public(), true
	}
	if err := s.note(cfg, &now); err != nil {
		return r, err
	}
	if r.Fresh {
		if err := sshauth.TakeHostKey(path); err != nil {
			return r, fmt.Errorf("put host key in its place: %w", err)
		}
	}
	r.StateDir, r.Instance, r.Epoch, r.HostKey = cfg.StateDir, now.Instance, now.Epoch, now.HostKey
	if now.Held {
		r.Held = len(s.processes.Hosted())
	}
	return r, nil
}
