package mail_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// node is a kernel of a cluster.
type node struct {
	*client.Client
	t       testing.TB
	name    string
	place   *testkit.Place
	members string               // its members file
	line    string               // its own line
	bus     string               // addresses
	with    func(*config.Config) // what else is configured; nil: nothing
	stop    func()
}

// pair returns two kernels that may send each other messages, alpha and beta, and their bus. Options are those of their
// lines.
func pair(t testing.TB, optionsOfAlpha, optionsOfBeta string) (alpha, beta *node, bus *testbus.Bus) {
	t.Helper()
	alpha, beta = &node{name: "alpha"}, &node{name: "beta"}
	lines := []string{alpha.home(t, optionsOfAlpha), beta.home(t, optionsOfBeta)}
	bus = testbus.Start(t, lines...)
	for _, n := range []*node{alpha, beta} {
		n.know(lines...)
		n.bus = bus.URL()
		n.start()
	}
	return alpha, beta, bus
}

// home makes the place and the key of the kernel, and returns its line of a members file.
func (n *node) home(t testing.TB, options string) string {
	t.Helper()
	n.t, n.place = t, testkit.NewPlace(t, "")
	testkit.Must(t, os.MkdirAll(n.place.StateDir(), 0o700))
	_, n.line = testbus.Key(t, n.place.StateDir(), n.name, options)
	n.members = n.place.Path("members")
	return n.line
}

// know writes the kernel's members file.
func (n *node) know(lines ...string) {
	n.t.Helper()
	testkit.Must(n.t, os.WriteFile(n.members, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

// start starts the kernel, and connects to it as the operator.
func (n *node) start() {
	n.t.Helper()
	cfg := testkernel.Settings(n.place)
	cfg.File, cfg.Resources = n.place.Path("config.toml"), map[string]float64{"gpu": 8}
	cfg.Cluster.Name, cfg.Cluster.Bus, cfg.Cluster.Members = n.name, n.bus, n.members
	if n.with != nil {
		n.with(&cfg)
	}
	n.stop = testkernel.Start(n.t, cfg)
	n.Client = testkit.Value(n.dial(testkit.Context(n.t)))(n.t)
}

// dial is a connection of its own, as the operator.
func (n *node) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Options{RuntimeDir: n.place.RuntimeDir(), Patience: testkit.Patience})
}

// end ends the kernel.
func (n *node) end() {
	n.t.Helper()
	testkit.Must(n.t, n.Close())
	n.stop()
}

// reached waits until both kernels are on the bus.
func reached(t testing.TB, list ...*node) {
	t.Helper()
	for _, n := range list {
		testkit.Eventually(t, n.name+" reaches the bus", func() bool {
			return testkit.Value(client.Call(testkit.Context(t), n.Client, schema.ClusterStatus, &schema.ClusterStatusInput{}))(t).Connected
		})
	}
}

// spawn creates a process that may send and receive.
func (n *node) spawn(name string) int64 {
	n.t.Helper()
	in := &schema.SpawnInput{ChildAgentID: name, Capabilities: &schema.SpawnCapability{AllowedSyscalls: []string{"Syscall.SendMsg", "Ipc.*"}}}
	return testkit.Value(client.Call(testkit.Context(n.t), n.Client, schema.SyscallSpawn, in))(n.t).ChildPID
}

// send sends a payload as a process to one of another kernel.
func (n *node) send(as int64, kernel string, to int64, payload string) (*schema.SendMsgOutput, error) {
	n.t.Helper()
	in := &schema.SendMsgInput{ReceiverPID: to, ReceiverKernel: &kernel, Payload: schema.Value(payload)}
	in.PID = &as
	return client.Call(testkit.Context(n.t), n.Client, schema.SyscallSendMsg, in)
}

// sent is send for a message that must have this status.
func (n *node) sent(status string, as int64, kernel string, to int64, payload string) *schema.SendMsgOutput {
	n.t.Helper()
	out := testkit.Value(n.send(as, kernel, to, payload))(n.t)
	if out.Status != status {
		n.t.Fatalf("%s: %+v, want %s", payload, out, status)
	}
	return out
}

// refused is send for a message that must be refused with an id.
func (n *node) refused(id fault.ID, as int64, kernel string, to int64, payload string) {
	n.t.Helper()
	if out, err := n.send(as, kernel, to, payload); !errors.Is(err, id) {
		n.t.Fatalf("%+v, %v, want %s", out, err, id)
	}
}

// mail receives the messages in a mailbox, and returns the sender and payload of each.
func (n *node) mail(pid int64) (list []string) {
	n.t.Helper()
	in := &schema.ReceiveInput{}
	in.PID = &pid
	for _, m := range testkit.Value(client.Call(testkit.Context(n.t), n.Client, schema.IPCReceive, in))(n.t).Messages {
		list = append(list, fmt.Sprintf("%d@%s %s", m.SenderPID, m.SenderKernel, m.Payload))
	}
	return list
}

// recorded counts the entries of a type.
func (n *node) recorded(typ string) int {
	n.t.Helper()
	return strings.Count(n.place.Journal(n.t), `"type":"`+typ+`"`)
}
