package main

// exitIntegrity is the exit status of a journal that is not what was written (PROTOCOL 8).
const exitIntegrity = 10

// verdict is an end that a verb itself has found, with the exit status that says so. The kernel's errors have theirs from
// their code.
type verdict struct {
	status int
	err    error
}

func (v *verdict) Error() string { return v.err.Error() }

func (v *verdict) Unwrap() error { return v.err }
