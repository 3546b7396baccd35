package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/effect/undo"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/budget"
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Past rebuilds past states of the kernel, separate from the live one.
type Past struct {
	state *State
	// head returns the last entry of the journal. All entries up to it are on disk.
	head   func(context.Context) (uint64, error)
	turns  chan struct{} // one for each state that may be rebuilt at the same time
	agents chan struct{} // the same, for agents
}

var (
	_ rewind.Past  = (*Past)(nil)
	_ undo.History = (*Past)(nil)
)

// Limits of states that are rebuilt at the same time: each takes a processor and the memory of a state. One is reserved for
// the operator.
const (
	statesAtOnce  = 2
	statesOfAgent = 1
)

// Past returns a Past. head returns the last entry on disk.
func (s *State) Past(head func(context.Context) (uint64, error)) *Past {
	return &Past{state: s, head: head, turns: make(chan struct{}, statesAtOnce), agents: make(chan struct{}, statesOfAgent)}
}

// turn waits for the caller's turn, and returns the function that ends it.
func (p *Past) turn(ctx context.Context, pid int64) (back func(), err error) {
	lanes := []chan struct{}{p.turns}
	if pid != kernel.Operator {
		lanes = []chan struct{}{p.agents, p.turns}
	}
	back = func() {}
	for _, lane := range lanes {
		select {
		case lane <- struct{}{}:
			outer := back
			back = func() { <-lane; outer() }
		case <-ctx.Done():
			back()
			return nil, ctx.Err()
		}
	}
	return back, nil
}

// Head implements undo.History.
func (p *Past) Head(ctx context.Context) (uint64, error) { return p.head(ctx) }

// Entry implements undo.History.
func (p *Past) Entry(ctx context.Context, seq uint64) (*kernel.Call, error) {
	reader := p.reader(seq, func() uint64 { return seq })
	defer reader.Close() // read only
	line, err := reader.Next(ctx)
	switch {
	case errors.Is(err, io.EOF):
		return nil, beyond(seq, p.state.Journal.Written())
	case err != nil:
		return nil, fmt.Errorf("read entry %d: %w", seq, journal.TellOperator(err)) // the caller is the operator: nobody else undoes
	}
	kept := *line
	kept.Request, kept.Outcome = bytes.Clone(line.Request), bytes.Clone(line.Outcome) // the reader reuses them
	call, err := record.Recall(&kept)
	if err != nil {
		return nil, fmt.Errorf("read entry %d: %w", seq, err)
	}
	return call, nil
}

func (p *Past) reader(from uint64, limit func() uint64) *journal.Reader {
	return journal.NewReader(nil, p.state.Dir, journal.ReaderOptions{From: from, Limit: limit})
}

func beyond(seq, head uint64) error {
	return fault.ReplayBeyond.New("there is no entry %d yet: the last is %d", seq, head).With("head", strconv.FormatUint(head, 10))
}

// Fold implements undo.History: it returns domains as of an entry.
func (p *Past) Fold(ctx context.Context, until uint64, told func(read, of int64), domains ...schema.Domain) (*undo.Moment, error) {
	m, err := p.foldUntil(ctx, until, told, nil, domains...)
	if err != nil {
		return nil, err
	}
	return m.moment(), nil
}

// Scan implements undo.History.
func (p *Past) Scan(ctx context.Context, from, to uint64, wanted schema.Domain, each func(*kernel.Call) error) error {
	reader := p.reader(from, func() uint64 { return to })
	defer reader.Close() // read only
	made := map[schema.Domain]record.Position{wanted: {Seq: to}}
	return record.Fold(ctx, reader, map[schema.Domain]kernel.Domain{wanted: nothing{}}, made, func(_ *journal.Record, call *kernel.Call) error {
		if call == nil {
			return nil
		}
		return each(call)
	})
}

// nothing is a domain without state.
type nothing struct{ kernel.Domain }

// foldedState is a state that was rebuilt separately from the live one.
type foldedState struct {
	*State
	seq  uint64
	time int64
	hash journal.Hash
}

// allFolded are the domains that Fold rebuilds if the caller names none.
var allFolded = []schema.Domain{schema.Memory, schema.Process, schema.Capability, schema.Delta, schema.Ipc}

// foldUntil rebuilds a state from the snapshots that are old enough, and from the journal after them.
func (p *Past) foldUntil(ctx context.Context, until uint64, told func(read, of int64), each func(*kernel.Call), domains ...schema.Domain) (*foldedState, error) {
	head, err := p.head(ctx)
	if err != nil {
		return nil, err
	}
	if until > head {
		return nil, beyond(until, head)
	}
	m := &foldedState{State: p.state.beside(), seq: until}
	if err := m.make(m.State); err != nil {
		return nil, err
	}
	if len(domains) == 0 {
		domains = allFolded
	}
	folded, parts := make(map[schema.Domain]kernel.Domain), make(map[schema.Domain]record.Part)
	for _, name := range domains {
		folded[name], parts[name] = m.Domains[name], m.Domains[name]
	}
	made, err := p.state.load(ctx, parts, until)
	if err != nil {
		return nil, err
	}
	for _, at := range made {
		m.Tick = max(m.Tick, at.Tick)
	}
	anchor, err := journal.ReadAnchor(nil, p.state.Dir)
	if err != nil {
		return nil, err
	}
	// The entry until is always read: its time and its hash are part of the answer. The entry of the anchor is in the
	// archive.
	from := min(oldest(made)+1, max(until, 1))
	if anchor != nil && from <= anchor.Seq {
		m.Tick, m.time, m.hash, from = max(m.Tick, anchor.Tick), anchor.Time, anchor.Hash, anchor.Seq+1
	}
	reader := p.reader(from, func() uint64 { return until })
	defer reader.Close() // read only
	progress := progress{told: told, from: from, until: until}
	err = record.Fold(ctx, reader, folded, made, func(record *journal.Record, call *kernel.Call) error {
		m.Tick, m.time, m.hash = max(m.Tick, record.Tick), record.Time, record.Hash
		if each != nil && call != nil {
			each(call)
		}
		progress.read(record.Seq)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, d := range folded {
		if p, ok := d.(kernel.Publisher); ok {
			p.Publish()
		}
	}
	return m, nil
}

// beside returns a state with the same surroundings, and without domains.
func (s *State) beside() *State {
	return &State{
		Dir: s.Dir, Journal: s.Journal, log: s.log, means: s.means, make: s.make, Budgets: budget.New(),
		Snapshots: s.Snapshots, Seal: s.Seal, HostKey: s.HostKey, Variables: s.Variables, Web: s.Web, Space: s.Space, Tree: s.Tree,
	}
}

func (m *foldedState) moment() *undo.Moment {
	return &undo.Moment{Seq: m.seq, Tick: m.Tick, Memory: m.Memory, Tokens: m.Tokens, Mail: m.mailboxes}
}

// progress reports the progress of a fold.
type progress struct {
	told        func(read, of int64)
	from, until uint64
}

// progressEvery is how many entries are read between two reports, which takes a fraction of a second.
const progressEvery = 1 << 16

func (p *progress) read(seq uint64) {
	if p.told != nil && seq%progressEvery == 0 {
		p.told(int64(seq-p.from+1), int64(p.until-p.from+1))
	}
}

// Replay implements rewind.Past.
func (p *Past) Replay(ctx context.Context, q *rewind.Question) (*schema.ReplayOutput, error) {
	back, err := p.turn(ctx, q.Caller)
	if err != nil {
		return nil, err
	}
	defer back()
	domains := allFolded
	if q.Key != nil {
		domains = []schema.Domain{schema.Memory}
	}
	m, err := p.foldUntil(ctx, uint64(q.Until), q.Told, nil, domains...)
	if q.Caller == kernel.Operator {
		err = journal.TellOperator(err)
	}
	if err != nil {
		return nil, err
	}
	out := &schema.ReplayOutput{Seq: q.Until, Tick: m.Tick, Time: m.time, Head: m.hash.String()}
	switch {
	case q.Key != nil:
		out.Key = "/" + strings.TrimPrefix(*q.Key, "/")
		out.Value, err = answer[schema.Value](ctx, m, q, schema.MemoryGet.With(&schema.MemoryGetInput{Key: *q.Key}))
	case q.PID != 0:
		err = m.describe(ctx, q, out)
	default:
		out.Summary = m.summary()
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// describe adds a process to an answer.
func (m *foldedState) describe(ctx context.Context, q *rewind.Question, out *schema.ReplayOutput) error {
	var err error
	if out.Process, err = reply(ctx, m, q, schema.ProcessGet, &schema.ProcessGetInput{PID: q.PID}); err != nil {
		return err
	}
	if q.Token {
		if token := m.Tokens.Token(q.PID); token != nil {
			granted := token.Granted
			out.Token = &granted
		}
	}
	if q.Memory {
		as := *q
		as.Caller = q.PID // an agent may read only its own entries, which the present gate has checked
		state, err := reply(ctx, m, &as, schema.SyscallGetState, &schema.GetStateInput{})
		if err != nil {
			return err
		}
		out.Memory = state.Memory
	}
	if q.Mailbox {
		if n, ok := m.mailboxes.Unread(q.PID, m.Tick); ok {
			out.Mailbox = &n
		}
	}
	return nil
}

func (m *foldedState) summary() *schema.ReplayedAll {
	all := &schema.ReplayedAll{Processes: map[string]int64{}, Keys: m.Memory.Keys(), Tokens: int64(len(m.Tokens.Holders())), Messages: m.mailboxes.Held(m.Tick)}
	m.Processes.Each(func(p *schema.Descriptor) { all.Processes[p.State]++ })
	return all
}

// answer returns the state's answer to a query of the caller.
func answer[Out any](ctx context.Context, m *foldedState, q *rewind.Question, ask schema.Request) (out Out, err error) {
	call := kernel.NewCall(kernel.Request{
		Caller: kernel.Caller{PID: q.Caller, Origin: q.Origin}, Syscall: ask.Row, Input: ask.Input,
		Message: schema.Message{Kind: ask.Row.Kind, Type: ask.Row.Type},
	}, kernel.Moment{Tick: m.Tick, Time: m.time})
	call.PID, call.Origin, call.Token = q.Caller, q.Origin, m.Tokens.Token(q.Caller)
	result, err := m.Domains[ask.Row.Domain].Decide(&call)
	if err == nil && result.Read != nil {
		result, err = result.Read(ctx)
	}
	if err != nil {
		return out, err
	}
	if value, ok := any(&out).(*schema.Value); ok {
		*value = result.Data
		return out, nil
	}
	made, failed := ask.Row.Output().Decode(result.Data)
	if failed != nil {
		return out, failed
	}
	return *made.(*Out), nil
}

// reply is answer for a typed row.
func reply[In, Out any](ctx context.Context, m *foldedState, q *rewind.Question, row schema.Query[In, Out], in *In) (*Out, error) {
	out, err := answer[Out](ctx, m, q, row.With(in))
	return &out, err
}

// Changes returns how many changes of a domain were sent to the journal. It is safe for concurrent use.
func (s *State) Changes(name schema.Domain) int64 {
	switch name {
	case schema.Memory:
		return s.Memory.Changes()
	case schema.Capability:
		return s.Tokens.Changes()
	}
	return 0 // its steps cannot be overtaken
}
