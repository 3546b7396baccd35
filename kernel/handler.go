package kernel

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Handler is the implementation of one row of the syscall table. [Query], [Command], [Effect], [Step] and [Question]
// bind a row to functions of its types: others do not compile.
type Handler struct {
	row    *schema.Syscall
	decide func(*Call) (Result, error)
	apply  func(*Entry, any) // nil: nothing changes
}

// Entry is a command as it is in the journal: all that a state may depend on. It is the same in a
// replay.
type Entry struct {
	PID    int64
	Origin string
	Conn   string // the connection's name
	Tick   int64
	Time   int64 // Unix epoch, milliseconds
	Meta   *schema.Metadata
	Data   []byte // the reply's data

	Prepared any // computed from the input before; nil: nothing
}

// Reply decodes the reply of an entry. It panics if the reply does not have its form: no kernel has written that, and
// the state would be wrong.
func Reply[Out any](e *Entry, form *schema.Type) *Out {
	out, err := form.Decode(e.Data)
	if err != nil {
		panic("apply: the journal's reply: " + err.Error())
	}
	return out.(*Out)
}

// Runner carries out an effect that a handler decided, on a goroutine, and returns its result: one JSON value, or the
// error that the caller gets. It ends soon after ctx does.
type Runner func(ctx context.Context, job *Job) (data []byte, err error)

// Job is an effect to carry out: its intent is on disk.
type Job struct {
	Do     any    // the handler's decision
	PID    int64  // the process that the call acts as
	Origin string // of the stored things that it sees
	Token  *Token // of PID, when the call was decided; nil for the operator, or without one
	Moment        // of the intent
	ID     string // of the message
	Seq    uint64 // of the intent
	Cause  string // what the message names as its causation; empty: nothing
	Conn   string // the connection
	Via    string // the door it came by, see Caller

	// Progress pushes an event about the job's progress to the caller; nil: it has not asked for that. It may be
	// called until the runner returns.
	Progress func(Event)

	// Elsewhere is set by a runner that stored the answer in a blob and returns a reference. nil: it did not.
	Elsewhere *Elsewhere
}

// Elsewhere describes an answer that is in a blob.
type Elsewhere struct {
	Refs   []byte // the reference, for the reply's metadata
	Digest string // of the answer
}

// Query binds a query to the function that answers it. Like every function that decides, it changes nothing and may
// fail.
func Query[In, Out any](row schema.Query[In, Out], decide func(*Call, *In) (Out, error)) Handler {
	return Handler{row: row.Syscall, decide: deciding(decide, encoder[Out]())}
}

// Command binds a command to the function that decides it and the one that applies it; nil: nothing changes.
func Command[In, Out any](row schema.Command[In, Out], decide func(*Call, *In) (Out, error), apply func(*Entry, *In)) Handler {
	return Handler{row: row.Syscall, decide: deciding(decide, encoder[Out]()), apply: applying(apply)}
}

// Step binds a command of the kernel's own, which must not fail, as Command does.
func Step[In, Out any](row schema.Step[In, Out], decide func(*Call, *In) (Out, error), apply func(*Entry, *In)) Handler {
	return Handler{row: row.Syscall, decide: deciding(decide, encoder[Out]()), apply: applying(apply)}
}

// Question binds a query of the kernel's own, as Query does.
func Question[In, Out any](row schema.Question[In, Out], decide func(*Call, *In) (Out, error)) Handler {
	return Handler{row: row.Syscall, decide: deciding(decide, encoder[Out]())}
}

// Effect binds an effect to the function that decides what to do. The row's runner does it, see [Run]. The row's End
// is bound separately, with [End] if there is nothing to add.
func Effect[In, Out, Do any](row schema.Effect[In, Out], decide func(*Call, *In) (*Do, error)) Handler {
	intent := func(call *Call, in *In) (schema.Value, error) {
		do, err := decide(call, in)
		if err != nil {
			return nil, err
		}
		call.ask().Effect = &Work{Run: do}
		return begun, nil
	}
	return Handler{row: row.Syscall, decide: deciding(intent, encoder[schema.Value]())}
}

// Keeper is something to do of which the journal keeps other data than the reply.
type Keeper interface {
	// Kept is what the entry of the intent holds, which its apply reads.
	Kept() (schema.Value, error)
}

// Unfinished is the error of a Runner whose effect goes on: the caller gets the fault, and the intent has no outcome until the
// kernel is told it. If the kernel ends before, its next life resumes the effect.
type Unfinished struct{ *fault.Fault }

// PartialEffect binds a row of which some calls are effects. decide returns what to do outside, or nil, and a value: the
// reply, or with something to do what the journal keeps of the intent, unless that is a Keeper.
func PartialEffect[In, Out, Do any](row schema.Effect[In, Out], decide func(*Call, *In) (Out, *Do, error), apply func(*Entry, *In)) Handler {
	encode := encoder[Out]()
	either := func(call *Call, in *In) (schema.Value, error) {
		out, do, err := decide(call, in)
		if err != nil {
			return nil, err
		}
		if do != nil {
			call.ask().Effect = &Work{Run: do}
			if keeper, ok := any(do).(Keeper); ok {
				return keeper.Kept()
			}
		}
		return encode(out)
	}
	return Handler{row: row.Syscall, decide: deciding(either, encoder[schema.Value]()), apply: applying(apply)}
}

// End decides the end of an effect whose runner has said everything.
func End(call *Call, in *schema.EffectEnd) (schema.Value, error) {
	outcome := in.Verdict()
	if outcome.Err != nil {
		return nil, outcome.Err
	}
	if outcome.Refs != nil {
		call.ask().Refs = bytes.Clone(outcome.Refs)
	}
	return bytes.Clone(outcome.Data), nil
}

// Run is the runner of an effect whose handler decides a Do: run returns the input of its end.
func Run[Do, Done any](run func(context.Context, *Job, *Do) (Done, error)) Runner {
	return func(ctx context.Context, job *Job) ([]byte, error) {
		done, err := run(ctx, job, job.Do.(*Do))
		if err != nil {
			return nil, err
		}
		return encoder[Done]()(done) // not shared: runners run concurrently
	}
}

func deciding[In, Out any](decide func(*Call, *In) (Out, error), encode func(Out) ([]byte, error)) func(*Call) (Result, error) {
	return func(call *Call) (Result, error) {
		out, err := decide(call, call.Input.(*In))
		return decided(call, out, err, encode)
	}
}

// decided is a handler's reply, and what it asked for besides.
func decided[Out any](call *Call, out Out, err error, encode func(Out) ([]byte, error)) (Result, error) {
	asked := call.asked
	if asked == nil { // the usual case
		if err != nil {
			return Result{}, err
		}
		data, err := encode(out)
		return Result{Data: data}, err
	}
	call.asked = nil
	if err != nil {
		return Result{}, err
	}
	if asked.Wait == 0 && asked.Read == nil && asked.More == nil {
		asked.Data, err = encode(out)
	}
	return *asked, err
}

func applying[In any](apply func(*Entry, *In)) func(*Entry, any) {
	if apply == nil {
		return nil
	}
	return func(e *Entry, in any) { apply(e, in.(*In)) }
}

// encoder returns a function that encodes replies of a type: a raw value unchanged, one with
// AppendJSON by that, and a constant one from one array that must not be changed. It is for one
// goroutine: replies pass through one variable to avoid an allocation.
func encoder[Out any]() func(Out) ([]byte, error) {
	if raw, ok := any(func(v schema.Value) ([]byte, error) { return v, nil }).(func(Out) ([]byte, error)); ok {
		return raw
	}
	same := slices.Clip(schema.SuccessOutput{}.AppendJSON(nil))
	if success, ok := any(func(schema.SuccessOutput) ([]byte, error) { return same, nil }).(func(Out) ([]byte, error)); ok {
		return success
	}
	reply := new(Out)
	write := func() ([]byte, error) { return schema.Marshal(reply) }
	if own, ok := any(reply).(interface{ AppendJSON(dst []byte) []byte }); ok {
		write = func() ([]byte, error) { return own.AppendJSON(nil), nil }
	}
	return func(out Out) ([]byte, error) {
		*reply = out
		data, err := write()
		*reply = *new(Out) // keep no reference to it
		return data, err
	}
}

// Handlers answer the calls of one domain: each row that the table has for it is bound to one handler. A domain
// embeds them to get Decide and Apply.
type Handlers struct {
	byRow []*Handler // indexed by the row's place in the table
}

// Bind returns the handlers of a domain. It panics, at start and in every test of the domain, if a row of the table
// has no handler, if a handler's row is not in the table, is another domain's or has two, or if a command is applied
// of which the journal does not keep all that it needs.
func Bind(domain schema.Domain, handlers ...Handler) Handlers {
	h := Handlers{byRow: make([]*Handler, len(schema.Syscalls()))}
	for i := range handlers {
		row := handlers[i].row
		switch listed, ok := schema.Lookup(row.Type); {
		case !ok || listed != row:
			panic(fmt.Sprintf("bind %s: the row %s is not in the syscall table", domain, row.Type))
		case row.Domain != domain:
			panic(fmt.Sprintf("bind %s: %s is a syscall of %s", domain, row.Type, row.Domain))
		case h.of(row) != nil:
			panic(fmt.Sprintf("bind %s: %s has two handlers", domain, row.Type))
		}
		if withheld := row.Input().Withheld(); handlers[i].apply != nil && len(withheld) > 0 {
			panic(fmt.Sprintf("bind %s: %s is applied, but the journal withholds %q, so that a replay would make another state", domain, row.Type, withheld))
		}
		h.byRow[row.Index()] = &handlers[i]
	}
	for _, row := range schema.Syscalls() {
		if row.Domain == domain && h.of(row) == nil {
			panic(fmt.Sprintf("bind %s: %s has no handler", domain, row.Type))
		}
	}
	return h
}

// of returns the handler of a row, nil if the row is another domain's.
func (h *Handlers) of(row *schema.Syscall) *Handler {
	if row == nil || row.Index() >= len(h.byRow) || h.byRow[row.Index()] == nil || h.byRow[row.Index()].row != row {
		return nil
	}
	return h.byRow[row.Index()]
}

// Decide calls the handler of the call's row. See [Domain].
func (h *Handlers) Decide(call *Call) (Result, error) {
	bound := h.of(call.Syscall)
	if bound == nil {
		return Result{}, fmt.Errorf("decide %s: it is no syscall of this domain", call.Message.Type)
	}
	return bound.decide(call)
}

// Apply calls the handler of the call's row. See [Domain].
func (h *Handlers) Apply(call *Call) {
	bound := h.of(call.Syscall)
	if bound == nil || bound.apply == nil {
		return
	}
	call.entry = Entry{
		PID: call.PID, Origin: call.Origin, Conn: call.Caller.Conn, Tick: call.Tick, Time: call.Time,
		Meta: &call.Message.Meta, Data: call.Data, Prepared: call.Prepared,
	}
	bound.apply(&call.entry, call.Input)
}

// Step asks for a command of the kernel's own to take effect before the call itself is applied. Several take effect
// in the order of the requests. They are journaled with the call as their cause, need no token, and must not fail.
func (c *Call) Step(step schema.Request) {
	result := c.ask()
	result.Steps = append(result.Steps, step)
}

// Park says that the call has no outcome yet. It is decided again when an applied call wakes its PID, and for the
// last time after the wait, counted from the first Park, when c.Final is set and it must have one; a question waits
// without limit. A wait of 0 parks nothing.
func (c *Call) Park(wait time.Duration) { c.ask().Wait = wait }

// Read computes the outcome on a goroutine. See [Result].
func (c *Call) Read(read func(context.Context) (Result, error)) { c.ask().Read = read }

// Compute computes the reply on a goroutine, as Read does the outcome: what compute uses must be safe for concurrent
// use.
func Compute[Out any](call *Call, compute func(context.Context) (Out, error)) {
	call.Read(func(ctx context.Context) (Result, error) {
		out, err := compute(ctx)
		if err != nil {
			return Result{}, err
		}
		data, err := encoder[Out]()(out) // not shared: several run concurrently
		return Result{Data: data}, err
	})
}

// InSlices decides in slices what takes long: slice is called once in each turn until it is done,
// and then returns the reply. The state does not change in between.
func InSlices[Out any](call *Call, slice func() (out Out, done bool)) Out {
	out, done := slice()
	if !done {
		call.ask().More = func() (Result, error) { return decided(call, InSlices(call, slice), nil, encoder[Out]()) }
	}
	return out
}

// Wake has the parked calls of processes decided again once the call is applied.
func (c *Call) Wake(pids ...int64) {
	result := c.ask()
	result.Wakes = append(result.Wakes, pids...)
}

// Announce tells calls that wait in other domains what this one has changed.
func (c *Call) Announce(news News) { c.ask().News.Add(news) }

// Advance moves the clock to a tick.
func (c *Call) Advance(tick int64) { c.ask().Tick = tick }

// Shutdown ends the kernel cleanly after the answer.
func (c *Call) Shutdown() { c.ask().Shutdown = true }

// Begin asks for work outside the kernel before the call is answered.
func (c *Call) Begin(w *Work) { c.ask().Effect = w }

// Follow subscribes the connection to a step or question of the kernel's own for the call's PID, as long as the
// connection lasts. See [Lasting].
func (c *Call) Follow(next schema.Request) { c.lasting().Follow = &next }

// Emit adds an event to the outcome of a subscription's question.
func (c *Call) Emit(e Event) { c.lasting().Events = append(c.lasting().Events, e) }

// OnClose asks for a step once the connection, or the subscription, has ended.
func (c *Call) OnClose(step schema.Request) { c.lasting().End = &step }

func (c *Call) lasting() *Lasting {
	result := c.ask()
	if result.Lasting == nil {
		result.Lasting = new(Lasting)
	}
	return result.Lasting
}

// ask returns what the call's handler asks for besides its reply.
func (c *Call) ask() *Result {
	if c.asked == nil {
		c.asked = new(Result)
	}
	return c.asked
}
