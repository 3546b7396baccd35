package kernel_test

import (
	"runtime"
	"strings"
	"testing"
)

// Without a section [cluster] no code of NATS runs.
func TestNoClusterRunsNothing(t *testing.T) {
	t.Parallel()
	start(t).dial(t).call("Syscall.Ping", `{"payload":1}`, nil)
	stacks := make([]byte, 16<<20)
	if all := string(stacks[:runtime.Stack(stacks, true)]); strings.Contains(all, "nats-io") || strings.Contains(all, "pwos/cluster") {
		t.Error("a goroutine of NATS runs in a kernel without a cluster")
	}
}
