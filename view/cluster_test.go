package view_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func TestCluster(t *testing.T) {
	t.Parallel()
	plain := func(_ view.Look, text string) string { return text }
	s := &schema.ClusterStatusOutput{
		Name: "alpha", Bus: "nats://a:1", Acknowledge: "disk", Synced: 9, Copied: 7, Behind: 2, Trouble: "the bus is not reached",
		Members: []schema.ClusterMember{{Name: "beta", Key: "SHA256:x", Queued: 2, Trouble: "it does not answer"}, {Name: "gamma", Key: "SHA256:y", Allow: []string{"Syscall.SendMsg"}, Role: "viewer"}},
		Refused: []string{"line 3: a\x1b[2J"},
	}
	text := view.Cluster(s, plain).Text()
	for _, want := range []string{
		"nats://a:1, not reached", "up to entry 7 of 9, 2 behind", "beta, SHA256:x: may call here: nothing; 2 messages wait for it; it does not answer",
		"gamma, SHA256:y: may call here: Syscall.SendMsg; its operator sees this kernel as viewer", "the bus is not reached",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("a line of the members file is not escaped: %q", text)
	}
}
