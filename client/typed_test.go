package client_test

import (
	"errors"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestTypedCall: a row takes and returns its own types. The peer answers with the data of the request.
func TestTypedCall(t *testing.T) {
	t.Parallel()
	c := connected(t, answerAll)
	out, err := client.Call(testkit.Context(t), c, schema.SyscallPing, &schema.PingInput{Payload: schema.Value(`[1]`)})
	testkit.Must(t, err)
	if string(out.Payload) != "[1]" {
		t.Errorf("payload %s", out.Payload)
	}
	if _, err := client.Call(testkit.Context(t), c, schema.SyscallEcho, &schema.EchoInput{Message: "x"}); !errors.Is(err, fault.WireInvalidInput) {
		t.Errorf("an answer that does not fit Syscall.Echo: %v", err)
	}
}
