package daemon

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/effect/prompts"
	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/effect/undo"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/schema"
)

// lookBack connects what rebuilds past states, undoes changes, archives entries and redacts values. All of it needs the
// kernel.
func (d *Daemon) lookBack() {
	past := d.state.Past(d.kernel.Recorded)
	d.state.Rewind.Serve(rewind.Shell{Past: past, May: d.kernel.May})
	var copied func(ctx context.Context, entry uint64) uint64
	if d.config.Cluster.Name != "" {
		copied = d.cluster.Copied
	}
	archiver := past.Archiver(d.kernel.EndSegment, copied, d.config.StateDir, d.config.RuntimeDir)
	d.archiver.Store(archiver)
	d.redactor.Store(archiver.Redactor(d.kernel, state.Beside{
		Blobs: d.config.BlobDir(), Redact: d.blobs.Redact, Steps: d.stepsDir(), Forget: d.forget, Prompt: func(digest string) (bool, error) { return prompts.Remove(d.promptsDir(), digest) },
	}))
	d.undoer.Store(undo.New(undo.Runner{History: past, Kernel: d.kernel, Changes: d.state.Changes}))
}

func (d *Daemon) stepsDir() string   { return filepath.Join(real(d.config.StateDir), "steps") }
func (d *Daemon) promptsDir() string { return filepath.Join(real(d.config.StateDir), "prompts") }

// forget removes a value that was redacted from what is kept of steps.
func (d *Daemon) forget(ctx context.Context, value []byte) (removed int, err error) {
	if d.trees == nil { // a kernel that serves one call
		removed, err = trees.RedactStores(ctx, d.stepsDir(), value)
	} else {
		removed, err = d.trees.RedactValue(ctx, value)
	}
	more, promptsErr := prompts.Redact(d.promptsDir(), value)
	return removed + more, errors.Join(err, promptsErr)
}

// undo is the runner of Message.Undo. No connection is served before lookBack.
func (d *Daemon) undo(ctx context.Context, job *kernel.Job, do *rewind.Undo) (schema.UndoOutput, error) {
	return d.undoer.Load().Undo(ctx, job, do)
}

// archive is the runner of Audit.Archive.
func (d *Daemon) archive(ctx context.Context, job *kernel.Job, do *audit.Archive) (schema.AuditArchiveOutput, error) {
	return d.archiver.Load().Archive(ctx, job, do)
}

// redact is the runner of Audit.Redact.
func (d *Daemon) redact(ctx context.Context, job *kernel.Job, do *audit.Redact) (schema.AuditRedactOutput, error) {
	return d.redactor.Load().Redact(ctx, job, do)
}
