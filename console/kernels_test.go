package console_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// serveTwo runs two kernels of a cluster, alpha and beta, and serves the console of alpha. options are the options of each line of the
// members files.
func serveTwo(t *testing.T, options string) (alpha *served, beta *client.Client, stop func()) {
	t.Helper()
	places := map[string]*testkit.Place{"alpha": testkit.NewPlace(t, ""), "beta": testkit.NewPlace(t, "")}
	var lines []string
	for _, name := range []string{"alpha", "beta"} {
		testkit.Must(t, os.MkdirAll(places[name].StateDir(), 0o700))
		_, line := testbus.Key(t, places[name].StateDir(), name, options)
		lines = append(lines, line)
	}
	bus := testbus.Start(t, lines...)
	for name, place := range places {
		cfg := testkernel.Settings(place)
		cfg.Cluster.Name, cfg.Cluster.Bus, cfg.Cluster.Members = name, bus.URL(), place.Path("members")
		testkit.Must(t, os.WriteFile(cfg.Cluster.Members, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		ended := testkernel.Start(t, cfg)
		c := testkernel.Dial(t, place.RuntimeDir())
		testkit.Eventually(t, name+" reaches the bus", func() bool {
			return testkit.Value(client.Call(testkit.Context(t), c, schema.ClusterStatus, &schema.ClusterStatusInput{}))(t).Connected
		})
		if name == "beta" {
			beta, stop = c, ended
			continue
		}
		alpha = serveOf(t, func(ctx context.Context) (*client.Client, error) {
			return client.Dial(ctx, client.Options{RuntimeDir: place.RuntimeDir(), Patience: testkit.Patience})
		})
		alpha.kernel = c
	}
	return alpha, beta, stop
}

// TestOtherKernel checks that the page shows of another kernel what that kernel's members file allows, and changes nothing there. If the
// other kernel is down, its requests fail, and those of the own kernel still succeed.
func TestOtherKernel(t *testing.T) {
	t.Parallel()
	s, beta, stop := serveTwo(t, `allow="Syscall.Spawn,Syscall.Terminate,Memory.*",role="viewer"`)
	testkit.Value(client.Call(testkit.Context(t), beta, schema.SyscallSpawn, &schema.SpawnInput{ChildAgentID: "of-beta"}))(t)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"of-alpha"}`)
	s.do(t, "Syscall.Spawn", `{"child_agent_id":"builder","kernel":"beta","capabilities":{"allowed_syscalls":["Memory.Get"]}}`)
	token := s.login(t)
	for _, c := range []struct {
		what   string
		status int
		says   string
		never  string
	}{
		{"GET /api/kernels", 200, `{"own":"alpha","others":["beta"]}`, ""},
		{"GET /api/processes", 200, `"of-alpha"`, "of-beta"},
		{"GET /api/processes?kernel=beta", 200, `"of-beta"`, "of-alpha"},
		{"GET /api/log?kernel=beta&type=Syscall.Spawn", 200, "of-beta", "of-alpha"},
		{"GET /api/log?kernel=beta&since_seq=9007199254740991&limit=1", 200, `"rows":[],"next":0,"end":`, ""},
		{"GET /api/entry/1?kernel=beta", 200, "Kernel.Booted", ""},
		{"GET /api/approvals?kernel=beta", 200, `"approvals":[]`, ""},
		{"GET /api/search?kernel=beta&query=of", 200, `"rows":[`, ""},
		{"GET /api/graph?kernel=beta&correlation=none", 200, `"nodes":0`, ""},
		{"POST /api/call/Budget.Show?kernel=beta {}", 200, `"budgets"`, ""},
		{`POST /api/call/Capability.Get?kernel=beta {"pid":1}`, 200, `"allowed_syscalls"`, ""},
		{`POST /api/call/Process.Pause?kernel=beta {"target_pid":1}`, 422, "cluster.not_asked", ""},
		{`POST /api/call/Approval.Decide?kernel=beta {"id":"q-1","decision":"approve"}`, 422, "cluster.not_asked", ""},
		{`POST /api/call/Syscall.Terminate {"target_pid":1,"kernel":"beta"}`, 403, "capability.not_yours", ""},
		{"GET /api/events?kernel=beta", 422, "has no events", ""},
		{"GET /api/past?until=1&kernel=beta", 422, "the past of another kernel", ""},
		{"GET /api/processes?kernel=alpha", 422, "no kernel of the cluster", ""},
		{"GET /api/processes?kernel=gamma", 422, "no kernel of the cluster", ""},
		{"GET /api/processes?kernel=%3Cb%3E", 422, "no kernel of the cluster", ""},
	} {
		if a := s.ask(t, c.what, token); a.status != c.status || !strings.Contains(a.body, c.says) || c.never != "" && strings.Contains(a.body, c.never) {
			t.Errorf("%s: %d %s", c.what, a.status, a.body)
		}
	}
	stop()
	if a := s.ask(t, "GET /api/processes?kernel=beta", token); a.status != http.StatusServiceUnavailable || a.errorID() != "cluster.kernel_away" {
		t.Errorf("a kernel that is away: %d %s", a.status, a.body)
	}
	if a := s.ask(t, "GET /api/processes", token); a.status != http.StatusOK {
		t.Errorf("the own kernel: %d %s", a.status, a.body)
	}
}

// TestOtherKernelWithoutRole checks a member without a role: the other kernel shows what the process of the own kernel there may see,
// and the rows mark the page's own queries.
func TestOtherKernelWithoutRole(t *testing.T) {
	t.Parallel()
	s, beta, _ := serveTwo(t, `allow="Audit.Log"`)
	testkit.Value(client.Call(testkit.Context(t), beta, schema.SyscallSpawn, &schema.SpawnInput{ChildAgentID: "of-beta"}))(t)
	token := s.login(t)
	if a := s.ask(t, "GET /api/processes?kernel=beta", token); a.status != http.StatusForbidden || a.errorID() != "capability.denied" {
		t.Errorf("processes: %d %s", a.status, a.body)
	}
	s.ask(t, "GET /api/log?kernel=beta", token)
	a := s.ask(t, "GET /api/log?kernel=beta", token)
	if a.status != http.StatusOK || strings.Contains(a.body, "of-beta") || !strings.Contains(a.body, `"who":"kernel-alpha","type":"Audit.Log"`) || !strings.Contains(a.body, `"own":true`) {
		t.Errorf("the log: %d %s", a.status, a.body)
	}
}

// TestNoCluster checks that a kernel that is in no cluster has no other kernels.
func TestNoCluster(t *testing.T) {
	t.Parallel()
	s := serve(t)
	token := s.login(t)
	if a := s.ask(t, "GET /api/kernels", token); a.status != http.StatusOK || a.body != `{"own":"","others":[]}` {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := s.ask(t, "GET /api/processes?kernel=beta", token); a.status != http.StatusUnprocessableEntity {
		t.Errorf("%d %s", a.status, a.body)
	}
}
