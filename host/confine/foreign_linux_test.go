package confine_test

import (
	"testing"

	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/landlock-lsm/go-landlock/landlock"

	"github.com/promptware-os/pwos/host/confine"
)

// TestRights: of each level of Landlock a strict plan asks for all that another library knows of files and scopes: what is
// missing would not be controlled, and one that the level does not know would be refused.
func TestRights(t *testing.T) {
	t.Parallel()
	for i, theirs := range []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7, landlock.V8, landlock.V9, landlock.V10, landlock.V11,
	} {
		plan := confine.Plan{Means: confine.Means{ABI: i + 1}, Strict: true}
		ours := plan.Ruleset()
		if ours.Handled_access_fs != uint64(theirs.HandledAccessFS) || ours.Scoped != uint64(theirs.Scoped) {
			t.Errorf("level %d: files %#x, scopes %#x, want %v", i+1, ours.Handled_access_fs, ours.Scoped, theirs)
		}
	}
}

// TestNumbers: both numbers of a call mean the same call in another library's tables, and a call without a number on arm64
// does not exist there.
func TestNumbers(t *testing.T) {
	t.Parallel()
	rules := confine.Rules{Families: confine.StreamSocket, Notify: true, Connect: true, Execs: true, IPC: true, Trace: true}
	for _, n := range rules.Numbers() {
		name := arch.X86_64.SyscallNumbers[n[0]]
		number, exists := arch.AARCH64.SyscallNames[name]
		if name == "" || exists != (n[1] >= 0) || exists && number != n[1] {
			t.Errorf("amd64 %d is %q; arm64 %d is %q, and that call %d there", n[0], name, n[1], arch.AARCH64.SyscallNumbers[n[1]], number)
		}
	}
}
