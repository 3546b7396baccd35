package mail_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const mayRun = `allow="Syscall.SendMsg,Syscall.Spawn,Syscall.Terminate,Memory.*"`

// spawnAt spawns a process at another kernel, as a process of this one. An allowed of nil requests the default grant.
func (n *node) spawnAt(as int64, kernel, name string, allowed []string) (*schema.SpawnOutput, error) {
	n.t.Helper()
	in := &schema.SpawnInput{ChildAgentID: name, Kernel: &kernel}
	if in.PID = &as; allowed != nil {
		in.Capabilities = &schema.SpawnCapability{AllowedSyscalls: allowed}
	}
	return client.Call(testkit.Context(n.t), n.Client, schema.SyscallSpawn, in)
}

// endAt ends a process of another kernel, as a process of this one.
func (n *node) endAt(as int64, kernel string, pid int64) error {
	n.t.Helper()
	in := &schema.TerminateInput{TargetPID: pid, Kernel: &kernel}
	in.PID = &as
	_, err := client.Call(testkit.Context(n.t), n.Client, schema.SyscallTerminate, in)
	return err
}

// process describes a process of the kernel.
func (n *node) process(pid int64) *schema.Descriptor {
	n.t.Helper()
	return testkit.Value(client.Call(testkit.Context(n.t), n.Client, schema.ProcessGet, &schema.ProcessGetInput{PID: pid}))(n.t)
}

// token returns what a process of the kernel may call.
func (n *node) token(pid int64) string {
	n.t.Helper()
	out := testkit.Value(client.Call(testkit.Context(n.t), n.Client, schema.CapabilityGet, &schema.CapabilityGetInput{PID: &pid}))(n.t)
	return strings.Join(out.AllowedSyscalls, " ")
}

// spawner creates a process that may spawn and end others, and call allowed.
func (n *node) spawner(name string, allowed ...string) int64 {
	n.t.Helper()
	in := &schema.SpawnInput{ChildAgentID: name, Capabilities: &schema.SpawnCapability{
		AllowedSyscalls: append([]string{"Syscall.Spawn", "Syscall.Terminate"}, allowed...),
	}}
	return testkit.Value(client.Call(testkit.Context(n.t), n.Client, schema.SyscallSpawn, in))(n.t).ChildPID
}

// A process that is spawned at another kernel is a child of this kernel's process there, with no more rights than that and
// its spawner have. On this kernel only its spawner can end it.
func TestSpawnAbroad(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, mayRun, mayRun)
	reached(t, alpha, beta)
	out := testkit.Value(alpha.spawnAt(0, "beta", "one", []string{"Memory.Get"}))(t)
	if out.Kernel != "beta" || out.ChildAgentID != "kernel-alpha/one" || beta.token(out.ChildPID) != "Memory.Get" {
		t.Errorf("%+v may call %q", out, beta.token(out.ChildPID))
	}
	parent := beta.process(beta.process(out.ChildPID).ParentPID)
	if parent.AgentID != "kernel-alpha" {
		t.Errorf("the parent of the child is %q", parent.AgentID)
	}
	// The default grant is limited by the line of alpha there.
	if out := testkit.Value(alpha.spawnAt(0, "beta", "default", nil))(t); beta.token(out.ChildPID) != "SYS_SEND_MSG SYS_SPAWN SYS_TERMINATE" {
		t.Errorf("default grant: %q", beta.token(out.ChildPID))
	}
	// The default grant of an agent's child is also limited by the agent's token here.
	agent, other := alpha.spawner("agent", "Memory.Get"), alpha.spawner("other")
	child := testkit.Value(alpha.spawnAt(agent, "beta", "child", nil))(t)
	if got := beta.token(child.ChildPID); got != "SYS_SPAWN SYS_TERMINATE" {
		t.Errorf("default grant of an agent's child: %q", got)
	}
	if _, err := alpha.spawnAt(agent, "beta", "more", []string{"Memory.Set"}); !errors.Is(err, fault.CapabilityTooMuch) {
		t.Errorf("more than the spawner has: %v", err)
	}
	if _, err := alpha.spawnAt(0, "beta", "more", []string{"Http.Fetch"}); !errors.Is(err, fault.CapabilityTooMuch) {
		t.Errorf("more than the line has: %v", err)
	}
	if _, err := alpha.spawnAt(0, "beta", "one", nil); !errors.Is(err, fault.ProcessNameTaken) {
		t.Errorf("a name that is in use: %v", err)
	}
	if err := alpha.endAt(other, "beta", child.ChildPID); !errors.Is(err, fault.CapabilityNotYours) {
		t.Errorf("ended by another agent: %v", err)
	}
	testkit.Must(t, alpha.endAt(agent, "beta", child.ChildPID))
	testkit.Must(t, alpha.endAt(0, "beta", out.ChildPID))
	testkit.Must(t, alpha.endAt(0, "beta", out.ChildPID)) // it may be repeated
	if got := beta.process(child.ChildPID).State; got != "TERMINATED" {
		t.Errorf("the child is %s", got)
	}
	if err := alpha.endAt(0, "beta", beta.spawn("own")); !errors.Is(err, fault.CapabilityNotYours) {
		t.Errorf("a process of beta's own: %v", err)
	}
	for _, typ := range []string{"Process.SpawnedAbroad", "Process.EndedAbroad"} {
		if alpha.recorded(typ) == 0 {
			t.Errorf("the journal of alpha has no %s", typ)
		}
	}
	testkit.Eventually(t, "all calls have their outcome", func() bool {
		return alpha.recorded("Process.Settle") == alpha.recorded("Process.SpawnedAbroad")+alpha.recorded("Process.EndedAbroad")
	})
}

// A call that is not possible has one clear error, and has no effect.
func TestSpawnAbroadRefused(t *testing.T) {
	t.Parallel()
	alpha, beta, bus := pair(t, mayMail, "")
	reached(t, alpha, beta)
	refused := func(n *node, id fault.ID, kernel string) {
		t.Helper()
		if out, err := n.spawnAt(0, kernel, "child", nil); !errors.Is(err, id) {
			t.Errorf("%+v, %v, want %s", out, err, id)
		}
	}
	refused(alpha, fault.ClusterSelf, "alpha")
	refused(alpha, fault.ClusterNoKernel, "gamma")
	refused(alpha, fault.CapabilityDenied, "beta") // its line allows only messages
	refused(beta, fault.CapabilityDenied, "alpha") // its line has no options
	if err := alpha.endAt(0, "beta", 1); !errors.Is(err, fault.CapabilityDenied) {
		t.Errorf("end: %v", err)
	}
	beta.end()
	refused(alpha, fault.ClusterKernelAway, "beta")
	bus.Stop()
	// Until alpha notices, a call is sent, and it is unknown whether it arrived.
	testkit.Eventually(t, "alpha notices that the bus is away", func() bool {
		return !testkit.Value(client.Call(testkit.Context(t), alpha.Client, schema.ClusterStatus, &schema.ClusterStatusInput{}))(t).Connected
	})
	refused(alpha, fault.ClusterKernelAway, "beta")
	beta.start() // it now knows another key for alpha
	_, line := testbus.Key(t, testkit.Dir(t), "alpha", mayRun)
	testkit.Must(t, os.WriteFile(beta.members, []byte(line+"\n"+beta.line+"\n"), 0o600))
	bus.Restart()
	reached(t, alpha, beta)
	testkit.Eventually(t, "beta refuses the key of alpha", func() bool {
		_, err := alpha.spawnAt(0, "beta", "child", nil)
		return errors.Is(err, fault.ClusterSigned)
	})
	testkit.Eventually(t, "the refusal is in both journals", func() bool {
		return alpha.recorded("Cluster.Refused") > 0 && beta.recorded("Cluster.Refused") > 0
	})
	list := testkit.Value(client.Call(testkit.Context(t), beta.Client, schema.ProcessList, &schema.ProcessListInput{}))(t)
	if len(list.Processes) != 1 || list.Processes[0].AgentID != "kernel-alpha" {
		t.Errorf("processes of beta: %+v", list.Processes)
	}
}

// ask makes a query at another kernel.
func (n *node) ask(kernel, typ, data string) (string, error) {
	n.t.Helper()
	out, err := client.Call(testkit.Context(n.t), n.Client, schema.ClusterAsk, &schema.ClusterAskInput{Kernel: kernel, Type: typ, Data: schema.Value(data)})
	if err != nil {
		return "", err
	}
	return string(out.Data), nil
}

// What a kernel shows another one depends on the line: everything with a role, otherwise what the process of that kernel
// may see.
func TestAsk(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, `role="viewer"`, `allow="Audit.Log"`)
	reached(t, alpha, beta)
	own := beta.spawn("of-beta")
	alpha.spawn("of-alpha")
	list, err := alpha.ask("beta", "Process.List", `{}`)
	if err != nil || !strings.Contains(list, `"agent_id":"of-beta"`) {
		t.Errorf("a viewer: %s, %v", list, err)
	}
	if log, err := alpha.ask("beta", "Audit.Log", `{}`); err != nil || !strings.Contains(log, "Kernel.Booted") {
		t.Errorf("a viewer reads %s, %v", log, err)
	}
	if _, err := alpha.spawnAt(0, "beta", "child", nil); !errors.Is(err, fault.CapabilityDenied) {
		t.Errorf("a viewer spawns: %v", err)
	}
	if log, err := beta.ask("alpha", "Audit.Log", `{}`); err != nil || strings.Contains(log, "of-alpha") {
		t.Errorf("without a role: %s, %v", log, err)
	}
	if _, err := beta.ask("alpha", "Process.List", `{}`); !errors.Is(err, fault.CapabilityDenied) {
		t.Errorf("what the line does not allow: %v", err)
	}
	in := &schema.ClusterAskInput{Kernel: "alpha", Type: "Audit.Log"}
	data := testkit.Value(schema.ClusterAsk.Encode(in))(t)
	message := schema.Message{Kind: schema.KindQuery, Type: schema.ClusterAsk.Type, Data: data}
	if _, err := beta.attached(own).Do(testkit.Context(t), message); !errors.Is(err, fault.CapabilityDenied) && !errors.Is(err, fault.CapabilityOperatorOnly) {
		t.Errorf("an agent asks: %v", err)
	}
}

// attached returns a connection that acts as a process of the kernel.
func (n *node) attached(pid int64) *client.Client {
	n.t.Helper()
	c := testkit.Value(n.dial(testkit.Context(n.t)))(n.t)
	n.t.Cleanup(func() { testkit.Must(n.t, c.Close()) })
	testkit.Value(client.Call(testkit.Context(n.t), c, schema.ProcessAttach, &schema.AttachInput{AgentID: n.process(pid).AgentID}))(n.t)
	return c
}

// The quota of a member's line bounds what its processes hold in total.
func TestQuotaAbroad(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, `allow="Syscall.Spawn,SYS_ALLOC",quota="gpu=2"`, "")
	reached(t, alpha, beta)
	spawn := func(name string, gpu float64) (*schema.SpawnOutput, error) {
		in := &schema.SpawnInput{ChildAgentID: name, Kernel: new("beta"), Capabilities: &schema.SpawnCapability{
			AllowedSyscalls: []string{"SYS_ALLOC"}, ResourceQuotas: map[string]float64{"gpu": gpu},
		}}
		return client.Call(testkit.Context(t), alpha.Client, schema.SyscallSpawn, in)
	}
	if _, err := spawn("greedy", 3); !errors.Is(err, fault.CapabilityTooMuch) {
		t.Errorf("more than the quota: %v", err)
	}
	alloc := func(pid int64, amount float64) error {
		in := &schema.AllocInput{ResourceID: "gpu", Amount: amount}
		in.PID = &pid
		_, err := client.Call(testkit.Context(t), beta.Client, schema.SyscallAlloc, in)
		return err
	}
	one, two := testkit.Value(spawn("one", 2))(t), testkit.Value(spawn("two", 2))(t)
	testkit.Must(t, alloc(one.ChildPID, 1))
	testkit.Must(t, alloc(two.ChildPID, 1))
	if err := alloc(one.ChildPID, 1); err == nil {
		t.Error("the processes of alpha hold more than its quota")
	}
}

// Rules about sending and spawning apply to calls that arrive from another kernel.
func TestPolicyAbroad(t *testing.T) {
	t.Parallel()
	alpha, beta, _ := pair(t, mayRun, mayRun)
	reached(t, alpha, beta)
	testkit.WriteFile(t, beta.place.Path("policy.cedar"), `
@id("no-urgent") forbid(principal == Agent::"kernel-alpha", action == Syscall::"Syscall.SendMsg", resource)
when { context.via == "cluster" && context.args has priority && context.args.priority == "URGENT" };
@id("no-child") forbid(principal == Agent::"kernel-alpha", action == Syscall::"Syscall.Spawn", resource)
when { context.args.child_agent_id == "forbidden" };
`)
	testkit.Value(client.Call(testkit.Context(t), beta.Client, schema.PolicyReload, &schema.PolicyReloadInput{}))(t)
	to := beta.spawn("reader")
	send := func(priority string) error {
		in := &schema.SendMsgInput{ReceiverPID: to, ReceiverKernel: new("beta"), Payload: schema.Value(`1`), Priority: &priority}
		_, err := client.Call(testkit.Context(t), alpha.Client, schema.SyscallSendMsg, in)
		return err
	}
	testkit.Must(t, send("NORMAL"))
	if err := send("URGENT"); !errors.Is(err, fault.PolicyDenied) {
		t.Errorf("urgent: %v", err)
	}
	testkit.Value(alpha.spawnAt(0, "beta", "fine", nil))(t)
	if _, err := alpha.spawnAt(0, "beta", "forbidden", nil); !errors.Is(err, fault.PolicyDenied) {
		t.Errorf("spawn: %v", err)
	}
}
