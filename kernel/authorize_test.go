package kernel_test

import (
	"testing"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// TestAuthorize: the three checks of CAP 2 that need no more than a token, and who is exempt.
func TestAuthorize(t *testing.T) {
	t.Parallel()
	all := token(7, nil, nil, "*")
	until5 := token(7, nil, new(int64(5)), "Memory.Set")
	tests := []struct {
		name  string
		pid   int64
		token *kernel.Token
		typ   string
		tick  int64
		want  string // empty: it may
	}{
		{"operator", 0, nil, "Memory.Set", 0, ""},
		{"operator shuts down", 0, nil, "Syscall.Shutdown", 0, ""},
		{"everyone's without a token", 7, nil, "Syscall.Ping", 0, ""},
		{"everyone's with an expired one", 7, until5, "Syscall.Ping", 9, ""},
		{"granted", 7, until5, "Memory.Set", 5, ""},
		{"all granted", 7, all, "Syscall.Alloc", 0, ""},
		{"no token", 7, nil, "Memory.Set", 0, `pid 7 may not call Memory.Set: allow it too with "pwos cap grant 7 --add Memory.Set"`},
		{"not allowed", 7, until5, "Memory.Get", 5, `pid 7 may not call Memory.Get: allow it too with "pwos cap grant 7 --add Memory.Get"`},
		{
			"expired", 7, until5, "Memory.Set", 6,
			`pid 7 may not call Memory.Set: its token expired after tick 5, and it is tick 6: allow it again with "pwos cap grant 7 --add Memory.Set"`,
		},
		{
			"expired comes before not allowed", 7, until5, "Memory.Get", 8,
			`pid 7 may not call Memory.Get: its token expired after tick 5, and it is tick 8: allow it again with "pwos cap grant 7 --add Memory.Get"`,
		},
		{"never was", 9, nil, "Ipc.Receive", 0, `pid 9 may not call Ipc.Receive: there never was such a process: "pwos ps" shows who is there`},
		{"never was, everyone's", 9, nil, "Syscall.Ping", 0, ""},
		{"the operator's own", 7, all, "Syscall.Shutdown", 0, "pid 7 may not call Syscall.Shutdown: only the operator may"},
		{"the kernel's own", 7, all, "Capability.Strip", 0, "pid 7 may not call Capability.Strip: it is the kernel's own"},
		{"the kernel's own, operator", 0, nil, "Resource.Free", 0, "pid 0 may not call Resource.Free: it is the kernel's own"},
	}
	for _, tt := range tests {
		err := kernel.Authorize(everybody{}, tt.pid, tt.token, lookup(t, tt.typ), tt.tick)
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%s: denied: %v", tt.name, err)
		case tt.want != "" && (err == nil || err.Text() != tt.want || err.Kind != schema.Forbidden):
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

// everybody is a process table in which 8 has ended and from 9 on nobody was there yet.
type everybody struct{}

func (everybody) Process(pid int64) *schema.Descriptor {
	switch {
	case pid > 8:
		return nil
	case pid == 8:
		return &schema.Descriptor{PID: pid, State: "TERMINATED"}
	}
	return &schema.Descriptor{PID: pid, State: "READY"}
}

// TestAuthorizeEnded: a process that has ended is not denied anything, it is gone: 410, whatever it calls.
func TestAuthorizeEnded(t *testing.T) {
	t.Parallel()
	for _, typ := range []string{"Ipc.Receive", "Syscall.Ping", "Syscall.Shutdown"} {
		err := kernel.Authorize(everybody{}, 8, token(8, nil, nil, "*"), lookup(t, typ), 0)
		if err == nil || err.Code() != 410 || err.EventCode() != "CONFLICT" || err.Text() != `pid 8 has ended, and calls nothing any more: "pwos ps" shows who is there` {
			t.Errorf("%s: %v", typ, err)
		}
	}
}
