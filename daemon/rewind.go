package daemon

import (
	"context"

	"github.com/promptware-os/pwos/effect/undo"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/schema"
)

// lookBack wires what makes past states, takes changes back, and archives the past. All of it needs the kernel.
func (d *Daemon) lookBack() {
	past := d.state.Past(d.kernel.Recorded)
	d.state.Rewind.Serve(rewind.Shell{Past: past, May: d.kernel.May})
	d.archiver.Store(past.Archiver(d.kernel.EndSegment, d.config.StateDir, d.config.RuntimeDir))
	d.undoer.Store(undo.New(undo.Runner{History: past, Kernel: d.kernel, Changes: d.state.Changes}))
}

// undo is the runner of Message.Undo. Nobody is served before lookBack.
func (d *Daemon) undo(ctx context.Context, job *kernel.Job, do *rewind.Undo) (schema.UndoOutput, error) {
	return d.undoer.Load().Undo(ctx, job, do)
}

// archive is the runner of Audit.Archive.
func (d *Daemon) archive(ctx context.Context, job *kernel.Job, do *audit.Archive) (schema.AuditArchiveOutput, error) {
	return d.archiver.Load().Archive(ctx, job, do)
}
