package state

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/kernel/idempotency"
	"github.com/promptware-os/pwos/kernel/metrics"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Archiver moves the oldest segments of the journal to another directory while the kernel runs.
type Archiver struct {
	past    *Past
	end     func(context.Context) error                    // ends the segment that is being written
	copied  func(ctx context.Context, entry uint64) uint64 // see Past.Archiver; nil: no cluster
	private []string                                       // directories of the kernel, in which no archive may be
	busy    chan struct{}                                  // one at a time
	log     *slog.Logger
}

// Archiver returns an Archiver. end ends the segment that is being written. copied waits briefly for the
// cluster's bus to have an entry, and returns the last one that it has; nil if there is no cluster. private are the kernel's own directories.
func (p *Past) Archiver(end func(context.Context) error, copied func(ctx context.Context, entry uint64) uint64, private ...string) *Archiver {
	return &Archiver{past: p, end: end, copied: copied, private: private, busy: make(chan struct{}, 1), log: p.state.log}
}

// Archive is the runner of Audit.Archive. Until the anchor is written, only the archive's directory changes, so an error or
// the end of the process leaves the journal unchanged.
func (a *Archiver) Archive(ctx context.Context, job *kernel.Job, do *audit.Archive) (out schema.AuditArchiveOutput, err error) {
	out.Directory = do.Directory
	select {
	case a.busy <- struct{}{}:
		defer func() { <-a.busy }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	back, err := a.past.turn(ctx, job.PID)
	if err != nil {
		return out, err
	}
	defer back()
	s := a.past.state
	if s.HostKey == nil {
		return out, fault.KernelUnsupported.New("nothing can be archived: the kernel has no host key to sign the anchor with")
	}
	if err := a.checkPlace(do.Directory); err != nil {
		return out, err
	}
	if err := a.endSegment(ctx, do); err != nil {
		return out, err
	}
	plan, err := journal.PlanArchive(nil, s.Dir, do.Seq, do.Time)
	if plan == nil || err != nil {
		return out, err
	}
	if a.copied != nil {
		if through := a.copied(ctx, plan.Seq); through < plan.Seq {
			return out, fault.JournalUncopied.New("the bus has the entries up to %d, and %d was to be the last that is archived: the bus gets the rest from the journal", through, plan.Seq)
		}
	}
	if err := plan.Copy(ctx, do.Directory); err != nil {
		return out, placeFault(do.Directory, err)
	}
	made, err := a.past.whole(ctx, plan.Seq)
	if err != nil {
		return out, err
	}
	anchor := &journal.Anchor{Head: plan.Head, Tick: made.Tick, Time: time.Now().UnixMilli(), Form: anchorForm, Archive: do.Directory}
	if err := journal.WriteAnchor(nil, s.Dir, anchor, s.HostKey, made.write); err != nil {
		return out, err
	}
	if err := plan.Remove(); err != nil {
		a.log.Warn("archived segments are still in the journal: the next start removes them", "error", err)
	}
	out.Segments, out.Bytes, out.State = int64(plan.Segments), plan.Bytes, anchor.Bytes
	out.First, out.Last, out.Hash = int64(plan.First()), int64(plan.Seq), plan.Hash.String()
	return out, nil
}

// endSegment ends the segment that is being written if only that keeps its entries from the archive: if all entries are
// requested, or if the requested time includes its first ones. In the latter case the next Audit.Archive moves it.
func (a *Archiver) endSegment(ctx context.Context, do *audit.Archive) error {
	running, err := journal.Running(nil, a.past.state.Dir)
	if err != nil || running.Seq == 0 {
		return err
	}
	log := a.past.state.Journal
	if do.Seq <= log.Written() && (do.Seq > 0 || running.Time >= do.Time) {
		return nil
	}
	if err := a.end(ctx); err != nil {
		return err
	}
	// The archive is to have the signature of its end, which the audit log may be writing, so none is due: this waits for it. Its
	// errors reach journal.Options.Trouble, and the anchor is signed too.
	_ = log.Checkpoint()
	return nil
}

// write writes the states of all parts to an anchor.
func (s *State) write(put func(part string, chunk []byte) error) error {
	for name, part := range s.parts() {
		write := part.Snapshot()
		if err := write(func(chunk []byte) error { return put(string(name), chunk) }); err != nil {
			return err
		}
	}
	return nil
}

// whole rebuilds the state of all parts as of an entry, separate from the live one.
func (p *Past) whole(ctx context.Context, until uint64) (*State, error) {
	m := p.state.beside()
	m.Keys, m.Metrics = idempotency.New(), metrics.New()
	if err := m.make(m); err != nil {
		return nil, err
	}
	made, err := p.state.load(ctx, m.parts(), until)
	if err != nil {
		return nil, err
	}
	return m, m.advance(ctx, made, func() uint64 { return until })
}

// archiveFile matches the names of files in an archive.
var archiveFile = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+\.ndjson|checkpoints|redactions|base)(\.tmp)?$`)
})

// checkPlace refuses a directory that cannot be the archive.
func (a *Archiver) checkPlace(dir string) error {
	above, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return fault.JournalPlace.New("%s cannot be the archive: there is no directory %s to make it in", dir, filepath.Dir(dir)).With("directory", dir)
	}
	real := filepath.Join(above, filepath.Base(dir))
	if there, err := filepath.EvalSymlinks(real); err == nil {
		real = there
	}
	for _, own := range a.private {
		if at, err := filepath.EvalSymlinks(own); err == nil {
			own = at
		}
		if within(real, own) || within(own, real) {
			return fault.JournalPlace.New("%s cannot be the archive: the kernel's own directory %s is the same, in it, or around it", dir, own).With("directory", dir)
		}
	}
	entries, err := os.ReadDir(real)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return placeFault(dir, err)
	}
	for _, entry := range entries {
		if !archiveFile().MatchString(entry.Name()) || entry.IsDir() {
			return fault.JournalForeign.New("%s cannot be the archive: it has other files, such as %s; give a new directory", dir, entry.Name()).With("directory", dir)
		}
	}
	return nil
}

// within reports whether path is dir, or below it.
func within(path, dir string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && rest != ".." && !strings.HasPrefix(rest, "../")
}

// placeFault turns the error of a copy into one that says what is wrong with the directory.
func placeFault(dir string, err error) error {
	why := ""
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		why = "its disk is full: make room"
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		why = "the kernel may not write there: set its mode, or give another directory"
	case errors.Is(err, syscall.ENOTDIR):
		why = "it is not a directory: give another one"
	case errors.Is(err, journal.ErrLocked):
		why = "another program is using it: try again once that has ended"
	default:
		at, of := errors.AsType[*fs.PathError](err)
		if !of || !within(at.Path, dir) {
			return err
		}
		why = at.Op + ": " + at.Err.Error()
	}
	return fault.JournalPlace.New("%s cannot be the archive: %s", dir, why).With("directory", dir).Wrap(err)
}
