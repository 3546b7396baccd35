package imports_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// No kernel, and no command line, carries the server of the bus.
func TestServerIsApart(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]bool{"pwosd": false, "pwos": false, "pwos-bus": true} {
		list := string(testkit.Value(exec.Command("go", "list", "-deps", "../../cmd/"+program).Output())(t))
		if got := strings.Contains(list, "github.com/nats-io/nats-server/"); got != want {
			t.Errorf("%s links nats-server: %v, want %v", program, got, want)
		}
	}
}
