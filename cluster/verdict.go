package cluster

import "github.com/promptware-os/pwos/schema/fault"

// verdict says what an error of another kernel means for the letter or the call that it answers. Only nothingDone, said by
// the kernel that was asked, ends a letter.
type verdict uint8

const (
	unknown     verdict = iota // it may have been done, or be done later: it is asked again
	notNow                     // nothing was done, and the same may succeed later: a letter is sent again, a call has that outcome
	nothingDone                // nothing was done, and the same would fail again: that is the outcome
)

// verdicts has the verdict of each kind of fault. An error of an id that this build does not know is judged by its code.
var verdicts = [...]verdict{
	fault.Internal:        unknown,
	fault.InvalidJSON:     nothingDone,
	fault.SchemaViolation: nothingDone,
	fault.LineTooLong:     nothingDone,
	fault.UnknownSyscall:  nothingDone,
	fault.InvalidInput:    nothingDone,
	fault.NotFound:        nothingDone,
	fault.Unauthenticated: nothingDone,
	fault.Forbidden:       nothingDone,
	fault.Ended:           nothingDone,
	fault.Conflict:        nothingDone,
	fault.QuotaExceeded:   notNow,
	fault.Upstream:        unknown,
	fault.Timeout:         unknown,
	fault.Unavailable:     unknown,
	fault.Insufficient:    notNow,
	fault.Pending:         notNow,
}

// exceptions are the ids with another verdict than their kind.
var exceptions = map[fault.ID]verdict{
	fault.ClusterReplayed:     unknown, // an earlier request may have done it, or another host that leads that kernel
	fault.IdempotencyUnderWay: unknown,
	fault.KernelUnsupported:   nothingDone,
}

func verdictOf(f *fault.Fault) verdict {
	if v, ok := exceptions[f.ID]; ok {
		return v
	}
	if !f.Kind.Valid() {
		return unknown
	}
	return verdicts[f.Kind]
}
