package mail_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// dialer is a kernel that may be connected to as its operator.
type dialer interface {
	dial(ctx context.Context) (*client.Client, error)
}

// site is a kernel in a process of its own.
type site struct {
	name    string
	place   *testkit.Place
	process *testkit.Process
}

func (s *site) start(t *testing.T) {
	t.Helper()
	d := testkernel.Self(t)
	d.Dir = s.place.Dir
	s.process = d.Start(t)
}

// launch is start without the wait: a standby serves once it leads.
func (s *site) launch(t *testing.T) {
	t.Helper()
	d := testkernel.Self(t)
	d.Dir = s.place.Dir
	s.process = d.Launch(t)
}

func (s *site) dial(ctx context.Context) (*client.Client, error) {
	return client.Dial(ctx, client.Options{RuntimeDir: s.place.RuntimeDir(), Patience: testkit.Patience})
}

// busProcess is a node of the bus in a process of its own.
type busProcess struct {
	bus.Settings // its directory has the members file
	cmd          *exec.Cmd
}

func (b *busProcess) start(t *testing.T) {
	t.Helper()
	b.cmd = exec.Command(testkit.Value(os.Executable())(t))
	b.cmd.Dir, b.cmd.Env = b.Dir, append(os.Environ(), asBus+"="+string(testkit.Value(json.Marshal(b.Settings))(t)))
	out := testkit.Value(b.cmd.StdoutPipe())(t)
	testkit.Must(t, b.cmd.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	testkit.Must(t, err)
	b.Listen = strings.TrimSpace(line)
}

func (b *busProcess) kill(t *testing.T) {
	t.Helper()
	testkit.Must(t, b.cmd.Process.Kill())
	if err := b.cmd.Wait(); err == nil {
		t.Error("the bus ended without an error although it was killed")
	}
}

// writer sends numbered messages as a process of alpha. It repeats each under its key until it has an answer.
type writer struct {
	pid      int64
	next     int // number of the next message
	statuses map[string]int
}

// write sends n messages.
func (w *writer) write(ctx context.Context, alpha dialer, to int64, n int) error {
	for range n {
		data, err := schema.SyscallSendMsg.Encode(&schema.SendMsgInput{
			Target: schema.Target{PID: &w.pid}, ReceiverPID: to, ReceiverKernel: new("beta"), Payload: schema.Value(strconv.Itoa(w.next)),
		})
		if err != nil {
			return err
		}
		status, err := w.send(ctx, alpha, data)
		if err != nil {
			return fmt.Errorf("message %d of pid %d: %w", w.next, w.pid, err)
		}
		w.statuses[status]++
		w.next++
	}
	return nil
}

// send makes the call until it is answered. An unknown outcome counts as an answer: the kernel itself sends
// the message again.
func (w *writer) send(ctx context.Context, alpha dialer, data []byte) (string, error) {
	m := schema.Message{Kind: schema.KindCommand, Type: schema.SyscallSendMsg.Type, Data: data}
	m.Meta.IdempotencyKey = fmt.Sprintf("m-%d", w.next)
	for ctx.Err() == nil {
		c, err := alpha.dial(ctx)
		if err != nil {
			continue // it was killed, and is being restarted
		}
		reply, err := c.Do(ctx, m)
		if closed := c.Close(); err == nil && closed != nil {
			return "", closed
		}
		switch f := new(fault.Fault); {
		case err == nil:
			out, err := schema.SyscallSendMsg.Decode(reply.Data)
			if err != nil {
				return "", err
			}
			return out.Status, nil
		case errors.Is(err, fault.KernelInterrupted):
			return "unknown", nil
		case errors.As(err, &f) && f.Code() != 503 && f.ID != fault.CallCancelled && f.ID != fault.IdempotencyUnderWay:
			return "", err
		}
	}
	return "", ctx.Err()
}

// read receives messages at beta until all written ones have arrived, in the order of each sender.
func read(ctx context.Context, beta dialer, pid int64, writers []*writer, seen map[int64]int) error {
	for {
		left := 0
		for _, w := range writers {
			left += w.next - seen[w.pid]
		}
		if left == 0 {
			return nil
		}
		messages, err := receive(ctx, beta, pid)
		if err != nil {
			return fmt.Errorf("%d messages are missing: %w", left, err)
		}
		for _, m := range messages {
			if want := strconv.Itoa(seen[m.SenderPID]); string(m.Payload) != want || m.SenderKernel != "alpha" {
				return fmt.Errorf("message %s of %d@%s, want %s", m.Payload, m.SenderPID, m.SenderKernel, want)
			}
			seen[m.SenderPID]++
		}
	}
}

func receive(ctx context.Context, beta dialer, pid int64) ([]schema.MailMessage, error) {
	for {
		c, err := beta.dial(ctx)
		if err != nil {
			return nil, err
		}
		in := &schema.ReceiveInput{Target: schema.Target{PID: &pid}, WaitMS: new(int64(1000))}
		out, err := client.Call(ctx, c, schema.IPCReceive, in)
		err = errors.Join(err, c.Close())
		if errors.Is(err, fault.ClusterAway) {
			continue // nothing was done
		}
		if err != nil {
			return nil, err
		}
		return out.Messages, nil
	}
}

// sites starts alpha, beta and their bus, each as a separate process. Options are those of both lines.
func sites(t *testing.T, options string) (alpha, beta *site, b *busProcess) {
	t.Helper()
	list := []*site{{name: "alpha"}, {name: "beta"}}
	var lines []string
	for _, s := range list {
		lines = append(lines, s.home(t, options))
	}
	b = startBus(t, lines...)
	for _, s := range list {
		s.configure(t, b, lines, "")
		s.start(t)
	}
	return list[0], list[1], b
}

// home makes the place and the key of the kernel, and returns its line of a members file.
func (s *site) home(t *testing.T, options string) (line string) {
	t.Helper()
	s.place = testkit.NewPlace(t, "")
	testkit.Must(t, os.MkdirAll(s.place.StateDir(), 0o700))
	_, line = testbus.Key(t, s.place.StateDir(), s.name, options)
	return line
}

// configure writes the kernel's configuration, with more of its section, and its members file.
func (s *site) configure(t *testing.T, b *busProcess, lines []string, more string) {
	t.Helper()
	members := s.place.Path("members")
	testkit.WriteFile(t, members, strings.Join(lines, "\n")+"\n")
	testkit.WriteFile(t, s.place.Path("config.toml"), fmt.Sprintf(
		"cluster = {name = %q, bus = \"nats://%s\", members = %q%s}\nipc = {mailbox = 1000}\n", s.name, b.Listen, members, more))
}

// startBus runs a bus with these members.
func startBus(t *testing.T, lines ...string) *busProcess {
	t.Helper()
	b := &busProcess{Settings: bus.Settings{Dir: testkit.Dir(t), Listen: "127.0.0.1:0"}}
	b.run(t, lines)
	return b
}

// run starts it for the first time. The end of the test kills it.
func (b *busProcess) run(t *testing.T, lines []string) {
	t.Helper()
	testkit.WriteFile(t, b.Dir+"/members", strings.Join(lines, "\n")+"\n")
	b.start(t)
	t.Cleanup(func() { b.kill(t) })
}

// killer kills sites and the bus, in turns, at random moments.
type killer struct {
	chance      *rand.Rand
	alpha, beta *site
	bus         *busProcess
}

// strike kills the calling kernel, the other one, both, or the bus, depending on the round, and restarts them.
func (k *killer) strike(t *testing.T, round int) {
	t.Helper()
	victims := map[int][]*site{0: {k.alpha}, 1: {k.beta}, 2: {k.alpha, k.beta}, 3: {}}[round%4]
	pause(time.Duration(k.chance.Int64N(int64(60 * time.Millisecond))))
	for _, s := range victims {
		s.process.Kill(t)
	}
	if len(victims) == 0 {
		k.bus.kill(t)
		pause(time.Duration(k.chance.Int64N(int64(20 * time.Millisecond))))
		k.bus.start(t)
	}
	for _, s := range victims {
		s.start(t)
	}
}

// TestMailKilled kills the sending kernel, the receiving one, both, and the bus, at random moments while messages are in
// flight: each arrives once, in the order of its sender. PWOS_LONG=1 does it 100 times.
func TestMailKilled(t *testing.T) {
	rounds, ctx := killings(t)
	alpha, beta, b := sites(t, mayMail)
	k := &killer{rand.New(rand.NewPCG(1, 17)), alpha, beta, b}
	writers := []*writer{}
	for i := range 2 {
		writers = append(writers, &writer{pid: spawnAt(ctx, t, alpha, fmt.Sprint("writer", i)), statuses: map[string]int{}})
	}
	reader := spawnAt(ctx, t, beta, "reader")
	seen := map[int64]int{}
	for round := range rounds {
		var all sync.WaitGroup
		failed := make([]error, len(writers))
		for i, w := range writers {
			all.Go(func() { failed[i] = w.write(ctx, alpha, reader, 5+i) })
		}
		k.strike(t, round)
		all.Wait()
		testkit.Must(t, errors.Join(failed...))
		if err := read(ctx, beta, reader, writers, seen); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
	if more := testkit.Value(receive(ctx, beta, reader))(t); len(more) > 0 {
		t.Errorf("%d messages arrived twice: %+v", len(more), more)
	}
	t.Logf("%d rounds: %d and %d messages, %v, %v", rounds, writers[0].next, writers[1].next, writers[0].statuses, writers[1].statuses)
}

// killings returns how many rounds a test runs, and a context for them.
func killings(t *testing.T) (rounds int, ctx context.Context) {
	t.Helper()
	if os.Getenv("PWOS_LONG") == "" {
		return 4, testkit.Context(t)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	t.Cleanup(cancel)
	return 100, ctx
}

// TestSpawnKilled does the same while processes are spawned at another kernel and ended. Each call is repeated with its key
// until it has an outcome, which is never unknown. Each process exists once, and those that were ended have ended.
func TestSpawnKilled(t *testing.T) {
	rounds, ctx := killings(t)
	alpha, beta, b := sites(t, mayRun)
	k := &killer{rand.New(rand.NewPCG(2, 17)), alpha, beta, b}
	ended := map[int64]bool{} // by PID at beta
	for round := range rounds {
		var all sync.WaitGroup
		var mu sync.Mutex
		var failed error
		for i := range 4 {
			all.Go(func() {
				pid, err := spawnAndEnd(ctx, alpha, fmt.Sprintf("child-%d-%d", round, i), i%2 == 0)
				mu.Lock()
				defer mu.Unlock()
				if _, twice := ended[pid]; twice {
					err = fmt.Errorf("two calls spawned pid %d", pid)
				}
				ended[pid] = i%2 == 0
				failed = errors.Join(failed, err)
			})
		}
		k.strike(t, round)
		all.Wait()
		if failed != nil {
			t.Fatalf("round %d: %v", round, failed)
		}
	}
	c := testkit.Value(beta.dial(ctx))(t)
	defer func() { testkit.Must(t, c.Close()) }()
	children := 0
	for _, p := range testkit.Value(client.Call(ctx, c, schema.ProcessList, &schema.ProcessListInput{}))(t).Processes {
		if p.AgentID == "kernel-alpha" {
			continue
		}
		children++
		if want, known := ended[p.PID]; !known || want != (p.State == "TERMINATED") {
			t.Errorf("%s is %s; a call spawned it: %t, one ended it: %t", p.AgentID, p.State, known, want)
		}
	}
	if children != len(ended) {
		t.Errorf("%d processes, %d calls", children, len(ended))
	}
	t.Logf("%d rounds: %d processes", rounds, children)
}

// spawnAndEnd spawns a process at beta, and ends it if end is true.
func spawnAndEnd(ctx context.Context, alpha dialer, name string, end bool) (int64, error) {
	data, err := schema.SyscallSpawn.Encode(&schema.SpawnInput{ChildAgentID: name, Kernel: new("beta")})
	if err != nil {
		return 0, err
	}
	answer, err := insist(ctx, alpha, schema.SyscallSpawn.Type, name, data)
	if err != nil {
		return 0, err
	}
	out, err := schema.SyscallSpawn.Decode(answer)
	if err != nil || !end {
		return out.ChildPID, err
	}
	if data, err = schema.SyscallTerminate.Encode(&schema.TerminateInput{TargetPID: out.ChildPID, Kernel: new("beta")}); err == nil {
		_, err = insist(ctx, alpha, schema.SyscallTerminate.Type, "end "+name, data)
	}
	return out.ChildPID, err
}

// spawnedAt are the processes of a name that alpha has at beta.
func spawnedAt(ctx context.Context, t *testing.T, beta dialer, name string) (list []int64) {
	t.Helper()
	c := testkit.Value(beta.dial(ctx))(t)
	defer func() { testkit.Must(t, c.Close()) }()
	for _, p := range testkit.Value(client.Call(ctx, c, schema.ProcessList, &schema.ProcessListInput{}))(t).Processes {
		if p.AgentID == "kernel-alpha/"+name {
			list = append(list, p.PID)
		}
	}
	return list
}

// insist makes a call under a key until it has an outcome.
func insist(ctx context.Context, s dialer, typ, key string, data []byte) ([]byte, error) {
	m := schema.Message{Kind: schema.KindCommand, Type: typ, Data: data}
	m.Meta.IdempotencyKey = key
	for ctx.Err() == nil {
		c, err := s.dial(ctx)
		if err != nil {
			pause(5 * time.Millisecond) // it was killed, and is being restarted
			continue
		}
		reply, err := c.Do(ctx, m)
		if closed := c.Close(); err == nil && closed != nil {
			return nil, closed
		}
		switch f := new(fault.Fault); {
		case err == nil:
			return reply.Data, nil
		case errors.As(err, &f) && f.Code() != 503 && f.ID != fault.ClusterUnanswered && f.ID != fault.IdempotencyUnderWay, errors.Is(err, fault.KernelInterrupted):
			return nil, fmt.Errorf("%s under the key %q: %w", typ, key, err)
		}
		pause(20 * time.Millisecond)
	}
	return nil, ctx.Err()
}

// pause waits for some time: before a kill, or another try.
func pause(d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	<-ctx.Done()
}

func spawnAt(ctx context.Context, t *testing.T, s dialer, name string) int64 {
	t.Helper()
	c := testkit.Value(s.dial(ctx))(t)
	defer func() { testkit.Must(t, c.Close()) }()
	in := &schema.SpawnInput{ChildAgentID: name, Capabilities: &schema.SpawnCapability{AllowedSyscalls: []string{"Syscall.SendMsg", "Ipc.*"}}}
	return testkit.Value(client.Call(ctx, c, schema.SyscallSpawn, in))(t).ChildPID
}
