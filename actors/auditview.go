package actors

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	questions "github.com/promptware-os/pwos/kernel/audit"
	"github.com/promptware-os/pwos/schema"
)

// view is what the audit domain sees of the journal.
type view struct {
	kernel    *Kernel
	journal   *journal.Log
	snapshots *Snapshots // with the index; nil: there is none
}

var _ questions.Journal = view{}

// Metrics and the rest implement audit.Journal.
func (v view) Metrics(ctx context.Context, call *kernel.Call) (*schema.AuditMetricsOutput, error) {
	if _, err := v.look(ctx); err != nil { // so that all that was appended is counted
		return nil, err
	}
	out := v.kernel.metrics.ShownTo(call.PID, call.Origin)
	if refusal := v.kernel.refusal.Load(); refusal != nil {
		out.Refusing = *refusal
	}
	if v.kernel.warnings != nil && call.PID == kernel.Operator {
		out.Warnings = v.kernel.warnings()
	}
	return out, nil
}

// look asks the actor that appends for the journal as it is now.
type look struct{ seen chan<- seen }

// seen is the last entry, and the intents up to there that have not ended, with their status.
type seen struct {
	head    uint64
	unended map[uint64]string
}

func (v view) look(ctx context.Context) (seen, error) {
	answer := make(chan seen, 1)
	v.kernel.root.Send(v.kernel.audit, look{answer})
	select {
	case s := <-answer:
		return s, nil
	case <-ctx.Done():
		return seen{}, ctx.Err()
	}
}

func (v view) Log(ctx context.Context, as int64, in *schema.AuditLogInput, reach func(int64) bool) (*schema.AuditLogOutput, error) {
	now, err := v.look(ctx)
	if err != nil {
		return nil, err
	}
	return v.search(ctx, as, in, reach, now)
}

func (v view) Verify(ctx context.Context) (*schema.AuditVerifyOutput, error) {
	if _, err := v.look(ctx); err != nil { // so that all that was appended is checked
		return nil, err
	}
	report, err := journal.Verify(ctx, v.kernel.files, v.kernel.journalDir, journal.VerifyOptions{})
	if err != nil {
		return nil, fmt.Errorf("verify journal: %w", err)
	}
	out := &schema.AuditVerifyOutput{OK: report.OK(), Entries: int64(report.Entries), Head: report.Head.Hash.String()}
	if !report.OK() {
		out.Broken = report.Findings[0].Error()
	}
	return out, nil
}

// Notify implements audit.Journal.
func (v view) Notify() { v.kernel.followed.Store(true) }

// Bounds of what one Since returns and reads: what a subscriber that does not read may have outside of the journal, and how long
// it may take to find nothing.
const (
	maxRows     = 64
	maxRowBytes = 64 << 10
	maxScanned  = 4096
)

// Since implements audit.Journal. The row of a call with an effect is its end's.
func (v view) Since(ctx context.Context, as, from int64, reach func(int64) bool, wanted func(string) bool) (rows []schema.AuditEntry, next int64, err error) {
	if _, err := v.journal.Sync(); err != nil { // the entries of queries alone would wait for a command's
		return nil, from, errNoJournal()
	}
	reader := v.reader(uint64(from), v.journal.Synced)
	defer reader.Close() // read only
	size := 0
	for next = from; len(rows) < maxRows && size < maxRowBytes && next-from < maxScanned; {
		record, err := reader.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, from, fmt.Errorf("read journal: %w", err)
		}
		next = int64(record.Seq) + 1
		if !reach(ownerOf(record)) {
			continue
		}
		row, err := auditEntry(record, nil, as)
		if err != nil {
			return nil, from, err
		}
		if row != nil && wanted(row.Type) {
			rows = append(rows, *row)
			size += len(record.Request) + len(record.Outcome)
		}
	}
	return rows, next, nil
}

// reader reads the journal from an entry on, as far as limit says.
func (v view) reader(from uint64, limit func() uint64) *journal.Reader {
	return journal.NewReader(v.kernel.files, v.kernel.journalDir, journal.ReaderOptions{From: from, Limit: limit})
}
