package kernel_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// forgetful is an agent that follows its mailbox, and ends while it handles its first message. After its restart it reports
// that the message was delivered again, acknowledges it, and waits.
const forgetful = `
say() { printf '{"kind":"%s","type":"%s","data":%s,"metadata":{"id":"x","timestamp":1}}\n' "$@"; }
say reply Syscall.Authenticate null
say command Ipc.Subscribe '{"ack":true}'
read -r prologue; read -r subscribed; read -r event
case $event in
*'"redelivered":true'*)
	say command Ipc.Ack '{"msg_ids":[1]}'
	read -r acked
	say command Memory.Set "{\"key\":\"again\",\"value\":$acked}"
	read -r stored; read -r nothing ;;
*) exit 3 ;;
esac
`

// TestDeathOfAReceiver: a program ends with a message that it has not acknowledged, and gets it again after its restart.
// The operator follows the program's events meanwhile.
func TestDeathOfAReceiver(t *testing.T) {
	t.Parallel()
	d := start(t)
	c, follower := d.dial(t), d.dial(t)
	follower.call("Process.Subscribe", `{}`, nil)
	script, err := json.Marshal(forgetful)
	testkit.Must(t, err)
	spawned := c.call("Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"forgetful","command":["/bin/sh","-c",%s],"restart":"on-failure","capabilities":{"allowed_syscalls":["Ipc.*","Memory.*"]}}`, script), nil)
	var out struct {
		ChildPID int64 `json:"child_pid"`
	}
	testkit.Must(t, json.Unmarshal(spawned.Data, &out))
	c.mail(out.ChildPID, 1, "")
	for i, want := range []string{schema.ProcessSpawned, schema.ProcessStarted, schema.ProcessExited, schema.ProcessRestarted} {
		a := follower.event(schema.OsMessage, want)
		var p struct {
			PID      int64 `json:"pid"`
			Restarts int64 `json:"restarts"`
			Exit     *struct {
				Code int64 `json:"code"`
			} `json:"exit"`
		}
		if err := json.Unmarshal(a.Data, &p); err != nil || p.PID != out.ChildPID || (p.Exit != nil) != (i > 1) || i > 1 && p.Exit.Code != 3 || p.Restarts != int64(i/3) {
			t.Errorf("%s %s", want, a.Data)
		}
		if a.Metadata.Causation == "" {
			t.Errorf("%s has no cause", want)
		}
	}
	for {
		if a := c.ask("Memory.Get", fmt.Sprintf(`{"pid":%d,"key":"again"}`, out.ChildPID)); a.Kind == "reply" {
			var acked answer
			if err := json.Unmarshal(a.Data, &acked); err != nil || string(acked.Data) != `{"acknowledged":[1]}` {
				t.Errorf("after its restart the agent got %s", a.Data)
			}
			break
		}
	}
	c.call("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, out.ChildPID), nil)
	follower.event(schema.OsMessage, schema.ProcessTerminated)
	follower.event(schema.OsMessage, schema.ProcessExited)
}
