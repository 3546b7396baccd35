package code_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestConfined: a worker has no privileges, a network of its own, which is empty, and nothing of this process's environment.
func TestConfined(t *testing.T) {
	t.Parallel()
	p := workers(t, code.Limits{})
	if _, err := p.call(t.Context(), adding, `{"a":1,"b":2}`); err != nil {
		t.Fatal(err)
	}
	read := func(osPID, name string) string {
		text, err := os.ReadFile("/proc/" + osPID + "/" + name)
		testkit.Must(t, err)
		return string(text)
	}
	for _, one := range p.host.Processes() {
		osPID := fmt.Sprint(one.OSPID())
		if one.PID() >= 0 {
			t.Errorf("the worker is process %d of the kernel", one.PID())
		}
		if status := read(osPID, "status"); !strings.Contains(status, "NoNewPrivs:\t1") || !strings.Contains(status, "CapEff:\t0000000000000000") {
			t.Errorf("the worker has privileges: %s", status)
		}
		for _, word := range strings.Split(strings.TrimSuffix(read(osPID, "environ"), "\x00"), "\x00") {
			name, _, _ := strings.Cut(word, "=")
			switch name {
			case "PATH", "LANG", "HOME", "USER", "LOGNAME", "TMPDIR", "GOMAXPROCS", "PWOS_PID", "PWOS_AGENT_ID":
			default:
				t.Errorf("the worker has the variable %s", word)
			}
		}
		if level := one.Sandbox(); level == "none" {
			t.Skip("this system has no sandbox")
		}
		own, err := os.Readlink("/proc/self/ns/net")
		testkit.Must(t, err)
		if its, err := os.Readlink("/proc/" + osPID + "/ns/net"); err != nil || its == own {
			t.Errorf("the worker's network is %s, %v", its, err)
		}
	}
}
