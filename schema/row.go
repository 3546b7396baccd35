package schema

import "sync"

// Command is the row of a syscall that changes state. In is the type of the data of a request, Out that of a reply.
type Command[In, Out any] struct{ typed[In, Out] }

// Query is the row of a syscall that only reads.
type Query[In, Out any] struct{ typed[In, Out] }

// Effect is the row of a command with an effect outside the kernel. Its entry in the journal is the intent; the entry
// of End, a command of the kernel's own, has the outcome.
type Effect[In, Out any] struct {
	typed[In, Out]
	End Step[EffectEnd, Value]
}

// Callable is a row that clients may call: a Command, a Query or an Effect.
type Callable[In, Out any] interface {
	// Row returns the row without its types.
	Row() *Syscall
	// Encode returns the data of a request.
	Encode(in *In) ([]byte, error)
	// Decode decodes the data of a reply.
	Decode(data []byte) (*Out, error)
}

// typed has the methods of the rows that clients may call.
type typed[In, Out any] struct{ *Syscall }

func (t typed[In, Out]) Row() *Syscall { return t.Syscall }

func (typed[In, Out]) Encode(in *In) ([]byte, error) { return Marshal(in) }

func (t typed[In, Out]) Decode(data []byte) (*Out, error) {
	out, err := t.Output().Decode(data)
	if err != nil {
		return nil, err
	}
	return out.(*Out), nil
}

// With returns the request for a call by the kernel.
func (t typed[In, Out]) With(in *In) Request { return Request{t.Syscall, in} }

// Step is the row of a command that the kernel sends to one of its domains. Clients cannot call it.
type Step[In, Out any] struct{ *Syscall }

// Question is the row of a query that the kernel repeats for a subscription. Clients cannot call
// it, and it is not journaled.
type Question[In, Out any] struct{ *Syscall }

// NewCommand returns the row of a command.
func NewCommand[In, Out any](row Syscall) Command[In, Out] {
	return Command[In, Out]{typed[In, Out]{define[In, Out](row, KindCommand)}}
}

// NewQuery returns the row of a query.
func NewQuery[In, Out any](row Syscall) Query[In, Out] {
	return Query[In, Out]{typed[In, Out]{define[In, Out](row, KindQuery)}}
}

// NewEffect returns the rows of an effect in one domain: the intent, which runs alone on its
// connection, and the end.
func NewEffect[In, Out any](intent, end Syscall) Effect[In, Out] {
	intent.Alone, intent.Outcome = true, end.Type
	end.Domain, end.ends = intent.Domain, true
	return Effect[In, Out]{typed: typed[In, Out]{define[In, Out](intent, KindCommand)}, End: NewStep[EffectEnd, Value](end)}
}

// NewPartialEffect returns the rows of a command of which some calls are effects: those whose input is Abroad.
func NewPartialEffect[In, Out any](command, end Syscall) Effect[In, Out] {
	row := NewEffect[In, Out](command, end)
	row.Alone = false // TakesLong of the input decides
	return row
}

// NewStep returns the row of a command of the kernel's own.
func NewStep[In, Out any](row Syscall) Step[In, Out] {
	row.Internal = true
	return Step[In, Out]{define[In, Out](row, KindCommand)}
}

// NewQuestion returns the row of a query of the kernel's own.
func NewQuestion[In, Out any](row Syscall) Question[In, Out] {
	row.Internal = true
	return Question[In, Out]{define[In, Out](row, KindQuery)}
}

// define completes a row. It compiles the types of the data on first use.
func define[In, Out any](row Syscall, kind Kind) *Syscall {
	row.Kind, row.input, row.output = kind, sync.OnceValue(TypeOf[In]), sync.OnceValue(TypeOf[Out])
	return &row
}

// Request is a call that the kernel makes to one of its own domains.
type Request struct {
	Row   *Syscall
	Input any // of the type of Row.Input
}

// With returns the request for the step.
func (s Step[In, Out]) With(in *In) Request { return Request{s.Syscall, in} }

// With returns the request for the question.
func (q Question[In, Out]) With(in *In) Request { return Request{q.Syscall, in} }
