package schema

import "sync"

// Command is the row of a syscall that changes state. In is the type of a request's data, Out that of a reply's.
type Command[In, Out any] struct{ *Syscall }

// Query is the row of a syscall that only reads.
type Query[In, Out any] struct{ *Syscall }

// Effect is the row of a command that has something done outside the kernel. Its entry in the journal is the intent; End is the
// kernel's own command whose entry says what came of it.
type Effect[In, Out any] struct {
	*Syscall
	End Step[EffectEnd, Value]
}

// Step is the row of a command of the kernel to one of its domains. No client can name it.
type Step[In, Out any] struct{ *Syscall }

// Question is the row of a query of the kernel to one of its domains, which a subscription asks again and again. No client can
// name it, and it leaves nothing in the journal.
type Question[In, Out any] struct{ *Syscall }

// NewCommand makes the row of a command.
func NewCommand[In, Out any](row Syscall) Command[In, Out] {
	return Command[In, Out]{define[In, Out](row, KindCommand)}
}

// NewQuery makes the row of a query.
func NewQuery[In, Out any](row Syscall) Query[In, Out] {
	return Query[In, Out]{define[In, Out](row, KindQuery)}
}

// NewEffect makes the rows of an effect, which belong to one domain: that of the intent, which runs alone on its connection, and
// that of the end.
func NewEffect[In, Out any](intent, end Syscall) Effect[In, Out] {
	intent.Alone, intent.Outcome = true, end.Type
	end.Domain, end.ends = intent.Domain, true
	return Effect[In, Out]{Syscall: define[In, Out](intent, KindCommand), End: NewStep[EffectEnd, Value](end)}
}

// NewStep makes the row of a command of the kernel's own.
func NewStep[In, Out any](row Syscall) Step[In, Out] {
	row.Internal = true
	return Step[In, Out]{define[In, Out](row, KindCommand)}
}

// NewQuestion makes the row of a query of the kernel's own.
func NewQuestion[In, Out any](row Syscall) Question[In, Out] {
	row.Internal = true
	return Question[In, Out]{define[In, Out](row, KindQuery)}
}

// define completes a row. Its types are compiled when they are first needed: a program that calls two syscalls does not pay for
// all.
func define[In, Out any](row Syscall, kind Kind) *Syscall {
	row.Kind, row.input, row.output = kind, sync.OnceValue(TypeOf[In]), sync.OnceValue(TypeOf[Out])
	return &row
}

// Request is one call of the kernel to one of its own domains.
type Request struct {
	Row   *Syscall
	Input any // what the row's Input describes
}

// With is the request for the step.
func (s Step[In, Out]) With(in *In) Request { return Request{s.Syscall, in} }

// With is the question about in.
func (q Question[In, Out]) With(in *In) Request { return Request{q.Syscall, in} }

// With is the request for a command, for where the kernel itself calls what clients call too.
func (c Command[In, Out]) With(in *In) Request { return Request{c.Syscall, in} }

// With is the request for a query.
func (q Query[In, Out]) With(in *In) Request { return Request{q.Syscall, in} }
