package state

import (
	"context"
	"errors"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Redactor removes members from entries of the journal while the kernel runs.
type Redactor struct {
	past   *Past
	kernel Redacting
	beside Beside
	copied func(ctx context.Context, entry uint64) uint64 // that of the Archiver
	busy   chan struct{}                                  // that of the Archiver: one of both runs at a time
}

// Redacting is what a Redactor needs from the kernel.
type Redacting interface {
	// EndSegment ends the segment that is being written.
	EndSegment(ctx context.Context) error
	// PauseSnapshots waits until no snapshot is being saved. No other one is saved until resume is called.
	PauseSnapshots(ctx context.Context) (resume func(), err error)
	// Replace runs work while a domain executes no call. intact is false if its state may differ from what the journal
	// results in; then the kernel ends without saving snapshots.
	Replace(name schema.Domain, work func() (intact bool, err error)) error
	// Vouch journals an Audit.Redacted. lost reports whether the entry may be on disk despite an error.
	Vouch(by schema.Request) (seq uint64, lost bool, err error)
}

// Redactor returns a Redactor that does not run at the same time as the Archiver.
func (a *Archiver) Redactor(k Redacting, beside Beside) *Redactor {
	return &Redactor{past: a.past, kernel: k, beside: beside, copied: a.copied, busy: a.busy}
}

// Redact is the runner of Audit.Redact.
func (r *Redactor) Redact(ctx context.Context, job *kernel.Job, do *audit.Redact) (out schema.AuditRedactOutput, err error) {
	select {
	case r.busy <- struct{}{}:
		defer func() { <-r.busy }()
	case <-ctx.Done():
		return out, ctx.Err()
	}
	back, err := r.past.turn(ctx, job.PID)
	if err != nil {
		return out, err
	}
	defer back()
	s := r.past.state
	if s.HostKey == nil {
		return out, fault.KernelUnsupported.New("nothing can be redacted: the kernel has no host key to sign the redaction with")
	}
	e, err := s.editOf(ctx, do.Seq, do.Member)
	if err != nil {
		return out, err
	}
	if do.Hash != "" && do.Hash != e.hash.String() {
		return out, fault.AuditInUse.New("entry %d of the running kernel is another one than that of the state directory: "+
			"set PWOS_RUNTIME_DIR and PWOS_STATE_DIR to those of the same kernel", do.Seq)
	}
	out = e.output(r.copied != nil)
	if !e.done && e.blob == "" {
		if r.copied != nil {
			if err := e.mustBeCopied(r.copied(ctx, e.seq)); err != nil {
				return out, err
			}
		}
		if err := r.rewrite(ctx, e, &out); err != nil {
			return out, err
		}
	}
	s.redactBeside(ctx, e, r.beside, &out)
	return out, nil
}

// rewrite takes the steps of State.Redact. From the end of step 2, no snapshot is saved and nothing is indexed. From before
// step 4, the domain that the entry belongs to executes no call, so that its state can be replaced with the one that was
// tried.
func (r *Redactor) rewrite(ctx context.Context, e *redaction, out *schema.AuditRedactOutput) (err error) {
	s := r.past.state
	t, err := s.try(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	w, err := s.prepare(ctx, e, r.kernel.EndSegment)
	if err != nil {
		return err
	}
	vouched := false
	defer func() {
		if !vouched {
			err = errors.Join(err, w.Discard())
		}
	}()
	resume, err := r.kernel.PauseSnapshots(ctx)
	if err != nil {
		return err
	}
	follow, err := s.clearProjections()
	if err != nil {
		resume()
		return err
	}
	defer func() {
		if vouched && err != nil {
			return // the kernel ends, and the next start must not find the value in its snapshots or its index
		}
		follow()
		resume()
	}()
	err = r.kernel.Replace(e.domain, func() (intact bool, err error) {
		if _, err := r.past.head(ctx); err != nil {
			return true, err
		}
		if err := t.advance(ctx, e); err != nil {
			return true, err
		}
		by, lost, err := r.kernel.Vouch(schema.AuditRedacted.With(e.voucher(w)))
		if vouched = err == nil || lost; err != nil {
			return !lost, err
		}
		out.By, out.Also, out.More = int64(by), e.also, e.more
		if err := w.Commit(by, s.HostKey, time.Now().UnixMilli()); err != nil {
			return false, err // the next start continues from here
		}
		s.Keys.Adopt(t.Keys)
		return true, s.adopt(e.domain, t.State)
	})
	return err
}

// adopt replaces the state of a domain with that of another State.
func (s *State) adopt(name schema.Domain, made *State) error {
	from, to := made.Domains[name], s.Domains[name]
	if from == nil || to == nil {
		return nil // it has no state
	}
	write := from.Snapshot()
	to.Reset()
	return write(to.Restore)
}

// clearProjections deletes snapshots and index. Nothing is indexed until follow is called, which starts with the first
// entry; queries read the journal meanwhile.
func (s *State) clearProjections() (follow func(), err error) {
	p := s.projections
	if p == nil {
		return func() {}, nil
	}
	p.cancel()
	p.follow.Wait()
	if err := p.index.Clear(); err != nil {
		s.followJournal()
		return nil, err
	}
	return s.followJournal, nil
}
