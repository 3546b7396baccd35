package export

import (
	"context"
	"errors"
	"slices"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// feed follows the audit log on one connection.
type feed struct {
	client    *client.Client
	arguments bool // keep the requests and replies of calls
	agent     bool // the connection is an agent's, whose entries have no requests, and so no names of tools
	live      bool // continue after the entries that existed at the start

	instance string
	epochs   []schema.Epoch
	last     int64 // entry of the subscription; earlier ones existed at the start
}

// errEnd ends a feed that is not live, after the entries that existed at the start.
var errEnd = errors.New("the export is complete")

// errAgent means that an agent's connection has to subscribe again without requests.
var errAgent = errors.New("only the operator may see the requests of calls")

// restoredError means that the kernel was restored from a copy older than the cursor: the export has to begin again
// with the entry from.
type restoredError struct{ from int64 }

func (restoredError) Error() string {
	return "the journal was restored from a copy older than the cursor"
}

// run calls take for the entries after a position until it fails, or all are read. It subscribes from the entry from,
// at least from the one after the position.
func (f *feed) run(ctx context.Context, after Position, from int64, take func(*Record) error) error {
	from = max(from, after.Seq+1)
	requests := !f.agent
	err := f.subscribe(ctx, &schema.AuditSubscribeInput{SinceSeq: &from, Request: &requests}, after, take)
	switch {
	case errors.Is(err, errEnd):
		return nil
	case errors.Is(err, fault.CapabilityOperatorOnly) && !f.arguments:
		return errAgent
	}
	return err
}

func (f *feed) subscribe(ctx context.Context, in *schema.AuditSubscribeInput, after Position, take func(*Record) error) error {
	data, err := schema.AuditSubscribe.Encode(in)
	if err != nil {
		return err
	}
	m := schema.Message{Kind: schema.KindCommand, Type: schema.AuditSubscribe.Type, Data: data}
	return f.client.SubscribeTo(ctx, m, func(answer schema.Message) error {
		out, err := schema.AuditSubscribe.Decode(answer.Data)
		if err != nil {
			return err
		}
		f.instance, f.epochs, f.last = out.Instance, out.Epochs, client.SeqOf(&answer)
		return f.check(after, *in.SinceSeq)
	}, func(event schema.Message) error {
		e := decoded[schema.AuditEntry](event.Data)
		if e == nil {
			return fault.ExportUnreadable.New("read entry: it has a form that this pwos does not know: %.200s", event.Data)
		}
		if !f.live && e.Seq >= f.last {
			return errEnd
		}
		return take(f.record(e))
	})
}

// check returns an error unless the kernel's journal continues the one that the export has read up to after.
func (f *feed) check(after Position, from int64) error {
	if f.instance == "" || len(f.epochs) == 0 || f.last == 0 {
		return fault.ExportUnreadable.New("the kernel does not name its journal: it is older than this pwos, or could not record its start; see \"pwos status\"")
	}
	if after.Seq == 0 {
		return nil
	}
	if after.Instance != f.instance {
		return fault.ExportOtherRecord.New("the export is at %s, and the journal of this kernel is %s: name another cursor or another file for this kernel", after, f.instance)
	}
	i := slices.IndexFunc(f.epochs, func(e schema.Epoch) bool { return e.Epoch == after.Epoch })
	switch {
	case i < 0 || i == len(f.epochs)-1 && after.Seq >= f.last:
		return fault.ExportOtherRecord.New("the export is at %s, and the journal of this kernel ends at %s: it is an older copy of the exported one", after, f.at(f.last))
	case i+1 < len(f.epochs) && from > f.epochs[i+1].FirstSeq:
		return restoredError{f.epochs[i+1].FirstSeq}
	}
	return nil
}

// at returns the position of an entry.
func (f *feed) at(seq int64) Position {
	p := Position{Instance: f.instance, Seq: seq, Epoch: f.epochs[0].Epoch}
	for _, e := range f.epochs {
		if e.FirstSeq <= seq {
			p.Epoch = e.Epoch
		}
	}
	return p
}

func (f *feed) record(e *schema.AuditEntry) *Record {
	r := &Record{At: f.at(e.Seq), Facts: factsOf(e)}
	if !f.arguments {
		e.Request, e.Payload = nil, nil
	}
	r.Entry = *e
	return r
}
