// Package audit implements the syscalls about the audit log. Its entries are those of the journal, which the shell
// writes: this domain has no state, and reads the journal through a view.
package audit

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Journal is a view of the journal. It is safe for concurrent use. All methods except Notify are slow.
type Journal interface {
	// Metrics counts the calls that the caller of a call may see.
	Metrics(ctx context.Context, call *kernel.Call) (*schema.AuditMetricsOutput, error)
	// Log returns a page of the entries of the processes that reach allows, in the form that the caller may see.
	Log(ctx context.Context, call *kernel.Call, in *schema.AuditLogInput, reach func(pid int64) bool) (*schema.AuditLogOutput, error)
	// Show returns one call in full, of a process that reach allows, in the form that the caller may see.
	Show(ctx context.Context, call *kernel.Call, in *schema.AuditShowInput, reach func(pid int64) bool) (*schema.AuditShowOutput, error)
	// Each calls do with the rows that an Audit.Log of in would return, as far as the journal has them, until it
	// returns false.
	Each(ctx context.Context, call *kernel.Call, in *schema.AuditLogInput, reach func(pid int64) bool, do func(*schema.AuditEntry) bool) error
	// Search finds calls that have all phrases, of the given processes, ascending; nil: of all.
	Search(ctx context.Context, call *kernel.Call, in *schema.EventSearchInput, phrases []schema.Phrase, pids []int64) (*schema.EventSearchOutput, error)
	// Archived says to a reader which entries, from one on, are archived; nil: none.
	Archived(reader int64, from uint64) (*schema.Archived, error)
	// Verify checks the journal.
	Verify(ctx context.Context, call *kernel.Call) (*schema.AuditVerifyOutput, error)
	// Since returns the first rows from an entry on, of processes that reach allows and of wanted types, as far as
	// they are on disk, and the entry to continue from: the same if there are none yet. Rows have the form that
	// reader may see, with the data of their messages where requests are asked for.
	Since(ctx context.Context, reader, from int64, requests bool, reach func(pid int64) bool, wanted func(typ string) bool) (rows []schema.AuditEntry, next int64, err error)
	// Record names the record: its instance and its epochs, empty if no start could be recorded.
	Record() (instance string, epochs []schema.Epoch)
	// Notify has the waiting calls of this domain decided again at the next entry.
	Notify()
}

// Domain answers the syscalls of schema.Audit.
type Domain struct {
	kernel.Stateless
	kernel.Handlers
	journal   Journal
	processes kernel.Processes
}

var _ kernel.Domain = (*Domain)(nil)

// New returns the domain. An agent sees its own calls and those of its descendants, as processes has them.
func New(journal Journal, processes kernel.Processes) *Domain {
	d := &Domain{journal: journal, processes: processes}
	d.Handlers = kernel.Bind(schema.Audit,
		kernel.Query(schema.AuditLog, d.log),
		kernel.Query(schema.AuditShow, d.show),
		kernel.Query(schema.AuditMetrics, d.metrics),
		kernel.Query(schema.AuditVerify, d.verify),
		kernel.Command(schema.AuditSubscribe, d.subscribe, nil),
		kernel.Question(schema.AuditWatch, d.watch),
		kernel.Query(schema.EventSearch, d.search),
		kernel.Query(schema.EventGraph, d.graph),
		kernel.Step(schema.AuditRedacted, redacted, nil),
		kernel.Effect(schema.AuditRedact, newRedact),
		kernel.Step(schema.AuditRedact.End, kernel.End, nil),
		kernel.Effect(schema.AuditArchive, newArchive),
		kernel.Step(schema.AuditArchive.End, kernel.End, nil),
	)
	return d
}

// reach selects the entries that a call may see: the operator sees all, an agent its own and its descendants'
// (PROTOCOL 12). A process whose parent is forgotten descends from no agent any more.
func (d *Domain) reach(caller int64, only *int64) func(pid int64) bool {
	return func(pid int64) bool {
		return (only == nil || pid == *only) &&
			(caller == kernel.Operator || pid == caller || kernel.Descends(d.processes, pid, caller))
	}
}

func (d *Domain) metrics(call *kernel.Call, _ *schema.AuditMetricsInput) (out schema.AuditMetricsOutput, err error) {
	read(call, func(ctx context.Context) (*schema.AuditMetricsOutput, error) { return d.journal.Metrics(ctx, call) })
	return out, nil
}

func (d *Domain) log(call *kernel.Call, in *schema.AuditLogInput) (out schema.AuditLogOutput, err error) {
	if _, err := requestsFor(call, in.Request); err != nil {
		return out, err
	}
	read(call, func(ctx context.Context) (*schema.AuditLogOutput, error) {
		return d.journal.Log(ctx, call, in, d.reach(call.PID, in.PID))
	})
	return out, nil
}

func (d *Domain) show(call *kernel.Call, in *schema.AuditShowInput) (out schema.AuditShowOutput, err error) {
	if (in.Seq == nil) == (in.Key == nil) {
		return out, kernel.Invalid("seq", "or key is required, and not both")
	}
	read(call, func(ctx context.Context) (*schema.AuditShowOutput, error) {
		return d.journal.Show(ctx, call, in, d.reach(call.PID, nil))
	})
	return out, nil
}

func (d *Domain) verify(call *kernel.Call, _ *schema.AuditVerifyInput) (out schema.AuditVerifyOutput, err error) {
	read(call, func(ctx context.Context) (*schema.AuditVerifyOutput, error) { return d.journal.Verify(ctx, call) })
	return out, nil
}

// read computes a reply's data on a goroutine.
func read[Out any](call *kernel.Call, compute func(context.Context) (*Out, error)) {
	call.Read(func(ctx context.Context) (kernel.Result, error) {
		out, err := compute(ctx)
		if err != nil {
			return kernel.Result{}, err
		}
		data, err := schema.Marshal(out)
		return kernel.Result{Data: data}, err
	})
}

// requestsFor reports whether the data of requests is asked for, which only the operator may: it contains mail.
func requestsFor(call *kernel.Call, asked *bool) (bool, error) {
	if asked == nil || !*asked {
		return false, nil
	}
	if call.PID != kernel.Operator {
		return false, fault.CapabilityOperatorOnly.New("pid %d may not see what others said: leave out request", call.PID).At("request")
	}
	return true, nil
}

// typePattern is the syntax of a member of types.
var typePattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*\.([A-Z][a-zA-Z0-9]*|\*)$`) })

func (d *Domain) subscribe(call *kernel.Call, in *schema.AuditSubscribeInput) (out schema.AuditSubscribeOutput, err error) {
	if call.Message.Meta.IdempotencyKey != "" {
		return out, fault.WireInvalidInput.New("Invalid input: a subscription is its connection's, and cannot be had again from another: leave out metadata.idempotencyKey")
	}
	for _, typ := range in.Types {
		if !typePattern().MatchString(typ) {
			return out, fault.WireInvalidInput.New("Invalid input: types has a text that is neither a type such as Memory.Set nor a pattern such as Memory.*").At("types")
		}
	}
	requests, err := requestsFor(call, in.Request)
	if err != nil {
		return out, err
	}
	next := schema.AuditWatchInput{PID: in.PID, Types: in.Types, Request: requests}
	if in.SinceSeq != nil {
		next.From = max(1, *in.SinceSeq)
	}
	call.Follow(schema.AuditWatch.With(&next))
	out.Success = true
	out.Instance, out.Epochs = d.journal.Record()
	return out, nil
}

// watch finds what to push next. It calls Notify before it reads the journal, so that no entry is missed.
func (d *Domain) watch(call *kernel.Call, in *schema.AuditWatchInput) (out schema.SuccessOutput, err error) {
	next := *in
	if next.From == 0 {
		next.From = int64(call.Cause) + 1
	}
	d.journal.Notify()
	call.Read(func(ctx context.Context) (kernel.Result, error) {
		from := next.From
		var rows []schema.AuditEntry
		var err error
		rows, next.From, err = d.journal.Since(ctx, call.PID, from, in.Request, d.reach(call.PID, in.PID), wants(in.Types))
		if err != nil {
			return kernel.Result{}, err
		}
		if next.From == from {
			return kernel.Result{Wait: kernel.Forever}, nil
		}
		follow := schema.AuditWatch.With(&next)
		lasting := &kernel.Lasting{Follow: &follow, Events: make([]kernel.Event, len(rows))}
		for i := range rows {
			data, err := schema.Marshal(&rows[i])
			if err != nil {
				return kernel.Result{}, err
			}
			lasting.Events[i] = kernel.Event{
				Type: schema.AuditRecorded, Data: data, Causation: rows[i].ID, Correlation: string(rows[i].Correlation),
			}
		}
		return kernel.Result{Data: []byte(`{"success":true}`), Lasting: lasting}, nil
	})
	return out, nil
}

// wants returns a filter for a list of types, each named in full or by its domain, such as Memory.*; without a list
// it accepts all.
func wants(types []string) func(typ string) bool {
	return func(typ string) bool {
		return len(types) == 0 || slices.ContainsFunc(types, func(one string) bool {
			domain, all := strings.CutSuffix(one, "*")
			return one == typ || all && strings.HasPrefix(typ, domain)
		})
	}
}
