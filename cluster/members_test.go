package cluster_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema/fault"
)

// A line of the members file is valid until it expires, an invalid line is ignored, and the file is read again when it
// changes.
func TestMembersFile(t *testing.T) {
	t.Parallel()
	key, line := testbus.Key(t, testkit.Dir(t), "beta", "")
	file := testkit.Dir(t) + "/members"
	testkit.WriteFile(t, file, line+"\nkernel=\"gamma\" nonsense\n")
	members := cluster.NewMembers(file)
	t.Cleanup(func() { testkit.Must(t, members.Close()) })
	found := testkit.Value(members.Find("beta"))(t)
	if found.Key.Fingerprint() != key.Key().Fingerprint() {
		t.Errorf("beta has the key %s", found.Key.Fingerprint())
	}
	if _, refused, err := members.List(); err != nil || len(refused) != 1 || refused[0].Line != 2 {
		t.Errorf("refused lines: %v, %v", refused, err)
	}
	if _, err := members.Find("gamma"); !errors.Is(err, fault.ClusterNoKernel) {
		t.Errorf("gamma: %v", err)
	}

	testkit.WriteFile(t, file, strings.Replace(line, `kernel="beta"`, `kernel="beta",expiry-time="20200101"`, 1)+"\n")
	testkit.Eventually(t, "the changed file is read", func() bool {
		_, err := members.Find("beta")
		return errors.Is(err, fault.ClusterNoKernel) && strings.Contains(err.Error(), "expired at 2020-01-01")
	})
	if keys := testkit.Value(members.Keys("beta"))(t); len(keys) > 0 {
		t.Errorf("an expired line vouches for %v", keys)
	}
}
