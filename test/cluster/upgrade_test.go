package cluster_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

// stamped builds the daemon and the bus as a version, and returns their directory.
func stamped(t *testing.T, version string) string {
	t.Helper()
	dir := testkit.Dir(t)
	flags := []string{"-ldflags", "-X github.com/promptware-os/pwos/internal/version.stamp=" + version}
	testkit.Must(t, testkit.Build(dir, flags, "github.com/promptware-os/pwos/cmd/pwosd", "github.com/promptware-os/pwos/cmd/pwos-bus"))
	return dir
}

// TestUpgrade replaces the programs of a cluster by those of another version, as docs/operations.md says, while clients set and get: each
// node of the bus, the standby, and the leader, which hands over. The oracle finds every acknowledged set at the end. Meanwhile clients
// may be refused, or get no answer: then they try again.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	if os.Getenv("PWOS_LONG") != "1" {
		t.Skip("needs PWOS_LONG=1")
	}
	before, after := stamped(t, "v1.0.0"), stamped(t, "v1.1.0")
	r := newRig(t, setup{hosts: 2, nodes: 3, lease: 5 * time.Second, daemon: filepath.Join(before, "pwosd"), bus: filepath.Join(before, "pwos-bus")})
	end := r.load(1)
	r.healed()
	leader, standby := r.leader(), r.other(r.leader())
	refused, unanswered, sets, at := int64(0), int64(0), int64(0), time.Now()
	done := func(what string) {
		t.Helper()
		if !r.await(2*testkit.Patience, r.complete) {
			_, out := r.pwos(r.leader(), "cluster", "nodes")
			t.Fatalf("%s, and not every node has all entries again:\n%s", what, out)
		}
		r.healed()
		h := r.history
		t.Logf("%s, in %v: %d sets acknowledged, %d attempts refused, %d not answered, at most %v without an acknowledged one", what,
			time.Since(at).Round(100*time.Millisecond), h.acknowledged.Load()-sets, h.refused.Load()-refused, h.unanswered.Load()-unanswered, h.silence(at).Round(time.Millisecond))
		refused, unanswered, sets, at = h.refused.Load(), h.unanswered.Load(), h.acknowledged.Load(), time.Now()
		h.generation.Add(1)
	}
	done("the cluster runs")

	for _, n := range r.nodes {
		n.away = true
		n.process.End(t, syscall.SIGTERM)
		if !r.await(testkit.Patience, func() bool { return !r.complete() }) {
			t.Fatalf("%s has ended, and \"pwos cluster nodes\" still says that every node has all entries", filepath.Base(n.dir))
		}
		n.daemon.Command[0] = filepath.Join(after, "pwos-bus")
		n.start(t)
		done(filepath.Base(n.dir) + " is replaced")
		if r.leader() != leader {
			t.Logf("host %d leads now", r.leader().index)
			leader, standby = r.leader(), r.other(r.leader())
		}
	}

	for _, h := range []*host{standby, leader} {
		other := r.other(h)
		h.down = true
		h.process.End(t, syscall.SIGTERM)
		if h == leader && !r.takenOver(2*testkit.Patience, other) {
			t.Fatal("the standby does not lead after the leader has ended")
		}
		h.daemon.Command[0] = filepath.Join(after, "pwosd")
		from := len(h.process.Output())
		h.start(t)
		h.down = false
		if !r.await(testkit.Patience, func() bool { return strings.Contains(h.process.Output()[from:], "standing by") }) {
			t.Fatalf("host %d does not stand by:\n%s", h.index, tail(h.process.Output()))
		}
		done(fmt.Sprintf("host %d is replaced", h.index))
	}
	if r.leader() != standby {
		t.Errorf("host %d leads at the end, want host %d", r.leader().index, standby.index)
	}
	r.versions("v1.1.0")
	r.readAll()
	end()
	r.stop()
	for _, found := range append(r.check(), r.panicked()...) {
		t.Error(found)
	}
}

// complete reports whether "pwos cluster nodes" says that every node has all entries, for which an upgrade waits
// before its next step.
func (r *rig) complete() bool {
	r.t.Helper()
	code, out := r.pwos(r.leader(), "cluster", "nodes")
	return code == 0 && strings.Count(out, `"state":"current"`) == len(r.nodes)
}

// versions checks that every running program has a version.
func (r *rig) versions(want string) {
	t := r.t
	t.Helper()
	code, out := r.pwos(r.leader(), "status", "--json")
	var status struct{ Version string }
	if err := json.Unmarshal([]byte(out), &status); code != 0 || err != nil || status.Version != want {
		t.Errorf("pwos status: exit %d, version %q, want %q: %s", code, status.Version, want, out)
	}
	processes := []*testkit.Process{r.other(r.leader()).process}
	for _, n := range r.nodes {
		processes = append(processes, n.process)
	}
	for _, p := range processes {
		if log := p.Output(); !strings.Contains(log, want) {
			t.Errorf("a node, or the standby, does not say that it is %s:\n%s", want, tail(log))
		}
	}
}
