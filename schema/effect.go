package schema

// EffectEnd is the data of the command that ends what a call had done outside the kernel: an Outcome of the syscall table.
type EffectEnd struct {
	Intent  int64  `json:"intent" min:"0" doc:"Entry of the journal that the call is."`
	Type    string `json:"type" doc:"Syscall that was called."`
	PID     int64  `json:"pid" min:"0" doc:"Process that it was called as."`
	Ran     bool   `json:"ran" doc:"Whether it was begun: where it was not, nothing has happened."`
	Outcome Value  `json:"outcome" doc:"What came of it, in the form of an entry's outcome."`
}

// Result is what the runner returned: data, or the error that its caller is to get.
func (in *EffectEnd) Result() ([]byte, *Error) {
	outcome, fault := DecodeOutcome(in.Outcome)
	if fault != nil {
		return nil, fault
	}
	return outcome.Data, outcome.Err
}
