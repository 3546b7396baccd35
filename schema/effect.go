package schema

import (
	"cmp"

	"github.com/promptware-os/pwos/schema/fault"
)

// EffectEnd is the data of the command that ends what a call had done outside the kernel: an Outcome of the syscall table.
type EffectEnd struct {
	Intent  int64  `json:"intent" keep:"always" min:"0" doc:"Entry of the journal that the call is."`
	Type    string `json:"type" keep:"always" doc:"Syscall that was called."`
	Name    string `json:"name,omitzero" keep:"always" doc:"Name of the registered syscall that was called."`
	PID     int64  `json:"pid" keep:"always" min:"0" doc:"Process that it was called as."`
	Ran     bool   `json:"ran" keep:"always" doc:"Whether it was begun: where it was not, nothing has happened."`
	Digest  string `json:"digest,omitzero" keep:"always" doc:"SHA-256 of an answer that is in a blob, to which the outcome refers."`
	Outcome Value  `json:"outcome" keep:"always" doc:"What came of it, in the form of an entry's outcome."`

	Causation string `json:"causation,omitzero" keep:"always" doc:"What the call named as its own cause."`
	Unknown   bool   `json:"unknown,omitzero" keep:"always" doc:"Whether the kernel stopped while it was under way, so that its outcome is not known."`
}

// EndOf returns what a journaled message says of the end of an effect, nil where it is no such end.
func EndOf(m *Message) *EffectEnd {
	if row, ok := Lookup(m.Type); !ok || !row.ends {
		return nil
	}
	in, err := TypeOf[EffectEnd]().Decode(m.Data)
	if err != nil {
		return nil
	}
	return in.(*EffectEnd)
}

// Called is the name of what was called.
func (in *EffectEnd) Called() string { return cmp.Or(in.Name, in.Type) }

// Result is what the runner returned: data, or the error that its caller is to get.
func (in *EffectEnd) Result() ([]byte, *fault.Fault) {
	outcome := in.Verdict()
	return outcome.Data, outcome.Err
}

// Verdict is the outcome.
func (in *EffectEnd) Verdict() Outcome {
	outcome, err := DecodeOutcome(in.Outcome)
	if err != nil {
		return Outcome{Err: err}
	}
	return outcome
}

// Ended is the request that ends an effect of the row.
func (s *Syscall) Ended(end *EffectEnd) Request {
	row, _ := Lookup(s.Outcome)
	return Request{Row: row, Input: end}
}
