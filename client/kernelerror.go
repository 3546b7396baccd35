package client

import (
	"errors"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// errAnswered lies behind each fault that a kernel answered with.
var errAnswered = errors.New("answered by the kernel")

// Answered returns the fault in err's chain that is the kernel's answer to a message that it did not carry out (MESSAGE 4.2.6);
// nil where there is none.
func Answered(err error) *fault.Fault {
	f, ok := errors.AsType[*fault.Fault](err)
	for ok && f.Err != errAnswered {
		f, ok = errors.AsType[*fault.Fault](errors.Join(f.Unwrap()...))
	}
	return f
}

// AsAnswered marks what a kernel said that was asked otherwise than over its socket.
func AsAnswered(f *fault.Fault) *fault.Fault { return f.Wrap(errAnswered) }

// answerOf reads the error m. Data of another form than MESSAGE 4.2.6 allows is shown as it is: it is still an error, and
// hiding it would help nobody.
func answerOf(m *schema.Message) *fault.Fault {
	f, err := schema.DecodeErrorData(m.Data)
	if err != nil || f.Message == "" {
		f = fault.KernelInternal.New("error of an unknown form: %s", m.Data)
	}
	f.SetID(fault.ID(m.Meta.Error))
	return AsAnswered(f)
}
