package client

import (
	"fmt"

	"github.com/promptware-os/pwos/schema"
)

// KernelError is the kernel's own error: the answer to a message that it did not carry out (MESSAGE 4.2.6).
type KernelError struct {
	Type    string // of the message that it answers; Validation.Failed where the kernel could not read that
	Code    int    // an HTTP status, 400 to 599
	Message string
	Cause   *KernelError // what lies behind it, where the kernel says so
}

// Error returns the message followed by the messages of its causes.
func (e *KernelError) Error() string {
	if e.Cause == nil {
		return e.Message
	}
	return e.Message + ": " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *KernelError) Unwrap() error {
	if e.Cause == nil {
		return nil
	}
	return e.Cause
}

// NewKernelError is the error of a kernel that was asked otherwise than over its socket.
func NewKernelError(typ string, e *schema.Error) *KernelError {
	if e == nil {
		return nil
	}
	return &KernelError{Type: typ, Code: e.Code(), Message: e.Message, Cause: NewKernelError(typ, e.Cause)}
}

// errorData is the data of an OsMessage error.
type errorData struct {
	Code    int64        `json:"code" min:"400" max:"599"`
	Message string       `json:"message"`
	Cause   schema.Value `json:"cause,omitzero"`
}

// newKernelError reads the data of the error m. Data of another form than MESSAGE 4.2.6 allows is shown as it is: it is
// still an error, and hiding it would help nobody.
func newKernelError(m *schema.Message) *KernelError {
	return readKernelError(m.Type, m.Data)
}

func readKernelError(typ string, data []byte) *KernelError {
	decoded, err := schema.TypeOf[errorData]().Decode(data)
	if err != nil {
		return &KernelError{Type: typ, Code: 500, Message: fmt.Sprintf("error of an unknown form: %s", data)}
	}
	d := decoded.(*errorData)
	e := &KernelError{Type: typ, Code: int(d.Code), Message: d.Message}
	if len(d.Cause) > 0 && string(d.Cause) != "null" {
		e.Cause = readKernelError(typ, d.Cause) // the depth of a frame is bounded, so this is
	}
	return e
}
