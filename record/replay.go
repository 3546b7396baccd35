package record

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// Replay applies the journal's commands to the domains that own them, except for those that a restored snapshot includes,
// and calls seen for every entry; for a query seen gets only what is counted. All states are built this way: nothing else
// reads the journal into the kernel.
func Replay(ctx context.Context, r *journal.Reader, domains map[schema.Domain]kernel.Domain, made map[schema.Domain]Position, seen func(*kernel.Call)) error {
	for {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("replay journal: %w", err)
		}
		// A query has changed nothing, so most of a journal need not be decoded.
		if kind, typ := schema.Peek(record.Request); kind == schema.KindQuery {
			call, err := asked(record, typ)
			if err != nil {
				return fmt.Errorf("replay entry %d: %w", record.Seq, err)
			}
			seen(call)
			continue
		}
		call, err := callOf(record)
		if err != nil {
			return fmt.Errorf("replay entry %d: %w", record.Seq, err)
		}
		if call.Err == nil && call.Syscall.Kind == schema.KindCommand && !call.Repeated {
			if d, ok := domains[call.Syscall.Domain]; ok && record.Seq > made[call.Syscall.Domain].Seq {
				d.Apply(call)
			}
		}
		seen(call)
	}
}

// Fold applies the journal's commands to some domains, and does not decode entries of others. After each entry it calls
// passed with it, and with the call if that was decoded; both are valid until passed returns, and its error ends the fold.
func Fold(ctx context.Context, r *journal.Reader, domains map[schema.Domain]kernel.Domain, made map[schema.Domain]Position, passed func(*journal.Record, *kernel.Call) error) error {
	for {
		record, err := r.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("fold journal: %w", err)
		}
		var call *kernel.Call
		kind, typ := schema.Peek(record.Request)
		row, known := schema.Lookup(typ)
		if d := domains[rowDomain(row)]; kind == schema.KindCommand && (d != nil || !known) {
			if call, err = callOf(record); err != nil {
				return fmt.Errorf("fold entry %d: %w", record.Seq, err)
			}
			if call.Err == nil && !call.Repeated && record.Seq > made[row.Domain].Seq {
				d.Apply(call)
			}
		}
		if err := passed(record, call); err != nil {
			return err
		}
	}
}

func rowDomain(row *schema.Syscall) schema.Domain {
	if row == nil {
		return ""
	}
	return row.Domain
}
