package imports_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestLinked: certain packages are not linked into a program. The actor library links OpenTelemetry's API and Prometheus'
// client into every kernel; packages that export the journal to other systems are only in pwos.
func TestLinked(t *testing.T) {
	t.Parallel()
	lists := make(map[string]string)
	for _, program := range []string{"pwosd", "pwos", "pwos-bus", "pwos-front"} {
		lists[program] = string(testkit.Value(exec.Command("go", "list", "-deps", "../../cmd/"+program).Output())(t))
	}
	for _, tt := range []struct {
		program, pkg string
		linked       bool
	}{
		{"pwosd", "github.com/nats-io/nats-server/", false},
		{"pwos", "github.com/nats-io/nats-server/", false},
		{"pwos-bus", "github.com/nats-io/nats-server/", true},
		{"pwosd", "github.com/promptware-os/pwos/export", false},
		{"pwosd", "github.com/cloudevents/", false},
		{"pwosd", "go.opentelemetry.io/otel/exporters/otlp", false},
		{"pwosd", "github.com/promptware-os/pwos/console", false},
		{"pwos", "github.com/promptware-os/pwos/export/metrics", true},
		{"pwos-front", "github.com/promptware-os/pwos/host", true},
		{"pwos-front", "github.com/promptware-os/pwos/kernel", false},
		{"pwos-front", "github.com/promptware-os/pwos/daemon", false},
		{"pwos-front", "github.com/asynkron/", false},
		{"pwos-front", "github.com/nats-io/", false},
		{"pwos-front", "github.com/prometheus/", false},
		{"pwos-front", "github.com/spf13/cobra", false},
		{"pwos-front", "modernc.org/", false},
		{"pwos-front", "text/template", false},
	} {
		if got := strings.Contains(lists[tt.program], tt.pkg); got != tt.linked {
			t.Errorf("%s links %s: %v, want %v", tt.program, tt.pkg, got, tt.linked)
		}
	}
}
