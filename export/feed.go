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
	arguments bool // keep what calls were given and answered
	agent     bool // an agent's, which is not told what calls were given; names of tools are missing then
	live      bool // go on when everything that was there is read

	instance string
	epochs   []schema.Epoch
	last     int64 // what was there ends before this entry, the subscription's own
}

// errEnd ends a feed that is not live.
var errEnd = errors.New("everything that was there is read")

// errAgent asks for another connection, which asks only for what an agent may see.
var errAgent = errors.New("only the operator is told what calls were given")

// again asks for another connection, which begins with an earlier entry.
type again struct{ from int64 }

func (again) Error() string { return "the record was restored from before the cursor" }

// run reads the entries after a position until take fails, or all are read. from is the first to ask for; 0: the
// position says.
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
			return fault.ExportUnreadable.New("read entry: the kernel sent one of another form than this pwos knows: %.200s", event.Data)
		}
		if !f.live && e.Seq >= f.last {
			return errEnd
		}
		return take(f.record(e))
	})
}

// check compares the record of the kernel with the position that the export has reached.
func (f *feed) check(after Position, from int64) error {
	if f.instance == "" || len(f.epochs) == 0 || f.last == 0 {
		return fault.ExportUnreadable.New("the kernel does not name its record: it is older than this pwos, or could not note its start; see \"pwos status\"")
	}
	if after.Seq == 0 {
		return nil
	}
	if after.Instance != f.instance {
		return fault.ExportOtherRecord.New("the export is at %s, and the record of this kernel is %s: name another cursor, or another file, for this one", after, f.instance)
	}
	i := slices.IndexFunc(f.epochs, func(e schema.Epoch) bool { return e.Epoch == after.Epoch })
	switch {
	case i < 0 || i == len(f.epochs)-1 && after.Seq >= f.last:
		return fault.ExportOtherRecord.New("the export is at %s, and the record of this kernel ends at %s: it is an older copy of what was exported", after, f.at(f.last))
	case i+1 < len(f.epochs) && from > f.epochs[i+1].FirstSeq:
		return again{f.epochs[i+1].FirstSeq}
	}
	return nil
}

// at is the position of an entry.
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
