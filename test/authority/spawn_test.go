package authority_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/test/authority/model"
)

// TestSpawnBehindAnother makes an agent spawn in a burst, after another call of the same domain: the child's grant
// must still depend on its parent's.
func TestSpawnBehindAnother(t *testing.T) {
	t.Parallel()
	s, _ := start(t, &config{mailbox: 50})
	op := s.connect(model.Operator)
	parent := op.spawn(t, `{"allowed_syscalls":["*"]}`)
	list, err := s.connect(parent).burst(
		request{typ: "Process.Get", data: fmt.Sprintf(`{"pid":%d}`, parent)},
		request{typ: "Syscall.Spawn", data: `{"child_agent_id":"b","capabilities":{"allowed_syscalls":["*"]}}`},
	)
	testkit.Must(t, err)
	out, err := read[schema.SpawnOutput]("Syscall.Spawn", list[1])
	testkit.Must(t, err)
	child := s.connect(out.ChildPID)
	set := request{typ: "Memory.Set", data: `{"key":"k","value":1}`}
	child.must(t, set.typ, set.data)
	op.must(t, "Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, parent))
	if a, err := child.ask(set); err != nil || a.code != 403 {
		t.Errorf("%s of a child whose parent's token is revoked: %s, %v, want error 403", set, a, err)
	}
}
