package mcp_test

import (
	"strings"
	"testing"
)

// TestMailIsKept: what a host has received stays in the mailbox until the host goes on, so that a connection that ends before loses
// nothing, and is gone then. What a host says itself about ack holds, and so does a grant without Ipc.Ack.
func TestMailIsKept(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		allow   string
		receive args
		goesOn  bool
		again   bool
	}{
		{"the host is gone", "Ipc.*", args{}, false, true},
		{"with other arguments", "Ipc.*", args{"max": 3}, false, true},
		{"the host goes on", "Ipc.*", args{}, true, false},
		{"the host does not want it", "Ipc.*", args{"ack": false}, false, false},
		{"the host does it", "Ipc.*", args{"ack": true}, true, true},
		{"it may not", "Ipc.Receive", args{}, false, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := connect(t, p.bridge(test.allow, "Memory.*"))
			p.operator("Syscall.SendMsg", `{"receiver_pid":1,"payload":"xyzzy"}`)
			if got, _ := h.call("Ipc_Receive", test.receive); !strings.Contains(got, "xyzzy") {
				t.Errorf("it has got %s", got)
			}
			if test.goesOn {
				h.expect("Memory_Set", args{"key": "a", "value": 1}, `{"success":true}`)
			}
			p.end()
			if !test.goesOn {
				h.close()
			}
			p.start()
			if !test.goesOn {
				h = connect(t, p.bridge(test.allow, "Memory.*"))
			}
			got := ""
			h.until("the kernel is back", func() bool {
				said, isError := h.call("Ipc_Receive", args{"ack": false})
				got = said
				return !isError
			})
			if strings.Contains(got, "xyzzy") != test.again {
				t.Errorf("then it gets %s", got)
			}
		})
	}
}
