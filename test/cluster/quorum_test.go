// Package cluster_test breaks the processes of a cluster while clients use it.
package cluster_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// rig is a kernel whose answers wait for its bus.
type rig struct {
	t      *testing.T
	place  *testkit.Place
	kernel *testkit.Process
	key    *access.HostKey
	nodes  []*node
	links  []*link

	mu      sync.Mutex
	seqs    map[uint64]string // which call each entry answered
	history []porcupine.Operation
	acked   atomic.Int64
	begun   time.Time
}

// node is one of the bus.
type node struct {
	daemon  testkit.Daemon
	process *testkit.Process
	url     string
}

func (n *node) start(t *testing.T) { n.process = n.daemon.Launch(t) }

func freePort(t *testing.T) string {
	l := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

// newRig starts a kernel and that many nodes.
func newRig(t *testing.T, nodes int) *rig {
	t.Helper()
	r := &rig{t: t, place: testkit.NewPlace(t, ""), seqs: make(map[uint64]string), begun: time.Now()}
	testkit.Must(t, os.MkdirAll(r.place.StateDir(), 0o700))
	r.key = testkit.Value(access.OpenHostKey(r.place.StateDir()))(t)
	members := r.place.Path("members")
	testkit.WriteFile(t, members, `kernel="alpha" `+r.key.Public()+"\n")
	var peers, servers []string
	for range nodes {
		peers = append(peers, freePort(t))
	}
	for i := range nodes {
		at := freePort(t)
		command := []string{testkit.Program(t, "pwos-bus"), "--dir", r.place.Path("bus" + strconv.Itoa(i)), "--members", members, "--listen", at}
		if nodes > 1 {
			command = append(command, "--name", "n"+strconv.Itoa(i), "--peers", peers[i])
			for j, peer := range peers {
				if j != i {
					command = append(command, "--route", "nats://"+peer)
				}
			}
		}
		n := &node{daemon: testkit.Daemon{Command: command, Dir: r.place.Dir}, url: "nats://" + at}
		n.start(t)
		l := newLink(t, at)
		r.nodes, r.links, servers = append(r.nodes, n), append(r.links, l), append(servers, "nats://"+l.listener.Addr().String())
	}
	testkit.WriteFile(t, r.place.Path("config.toml"), fmt.Sprintf(
		"[cluster]\nname = \"alpha\"\nbus = %q\nmembers = %q\nacknowledge = \"quorum\"\nreplicas = %d\nlease = \"5s\"\n", strings.Join(servers, ","), members, nodes))
	r.start()
	return r
}

func (r *rig) start() {
	r.kernel = r.place.Start(r.t, testkit.Daemon{Command: []string{testkit.Program(r.t, "pwosd")}})
}

// link is the network between the kernel and a node.
type link struct {
	listener net.Listener
	to       string
	mode     atomic.Int32
	open     sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// Modes of a link: it passes bytes, passes them late, swallows what comes back, or breaks each connection.
const (
	passes int32 = iota
	delays
	oneWay
	breaks
)

func newLink(t *testing.T, to string) *link {
	l := &link{listener: testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t), to: to, conns: make(map[net.Conn]bool)}
	l.open.Go(func() {
		for {
			in, err := l.listener.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil || l.mode.Load() == breaks {
				_ = in.Close()
				if err == nil {
					_ = out.Close()
				}
				continue
			}
			l.mu.Lock()
			l.conns[in], l.conns[out] = true, true
			l.mu.Unlock()
			l.open.Go(func() { l.pass(out, in, false) })
			l.open.Go(func() { l.pass(in, out, true) })
		}
	})
	t.Cleanup(func() {
		_ = l.listener.Close()
		l.cut()
		l.open.Wait()
	})
	return l
}

func (l *link) pass(to, from net.Conn, back bool) {
	defer to.Close()
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		switch l.mode.Load() {
		case delays:
			<-time.After(50 * time.Millisecond)
		case oneWay:
			if back {
				n = 0
			}
		}
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (l *link) set(mode int32) {
	l.mode.Store(mode)
	if mode == breaks {
		l.cut()
	}
}

// cut ends all connections.
func (l *link) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
		delete(l.conns, c)
	}
}

// op is what porcupine is told of a call: a value that was set, or that a get returned.
type op struct {
	key, value string
	set        bool
}

// registers is the model: each key is a register.
var registers = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		keys := make(map[string][]porcupine.Operation)
		for _, o := range history {
			k := o.Input.(op).key
			keys[k] = append(keys[k], o)
		}
		var all [][]porcupine.Operation
		for _, list := range keys {
			all = append(all, list)
		}
		return all
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		if in := input.(op); in.set {
			return true, in.value
		}
		return output.(string) == state.(string), state
	},
}

// client sets and gets keys until told to stop. A set is sent with the same idempotency key until it is acknowledged.
func (r *rig) client(id int, rng *rand.Rand, stop <-chan struct{}) {
	var conn *testkit.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	ask := func(kind, typ, data, idempotency string) (a answer, ok bool) {
		var err error
		if conn == nil {
			if conn, err = testkit.Dial(r.place.Socket()); err != nil {
				conn = nil
				return a, false
			}
		}
		_, err = fmt.Fprintf(conn, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"x","timestamp":1%s}}`+"\n", kind, typ, data, idempotency)
		var line []byte
		if err == nil {
			line, err = conn.Line()
		}
		if err == nil {
			err = json.Unmarshal(line, &a)
		}
		if err != nil {
			_ = conn.Close()
			conn = nil
		}
		return a, err == nil
	}
	for n := 0; ; n++ {
		key, value := "k"+strconv.Itoa(rng.IntN(3)), fmt.Sprintf("%d-%d", id, n)
		begin := time.Since(r.begun)
		if rng.IntN(2) == 0 {
			if a, ok := ask("query", "Memory.Get", `{"key":"`+key+`"}`, ""); ok && a.Metadata.Kernel.Acknowledged == "" {
				var got string
				if a.Kind == "reply" {
					_ = json.Unmarshal(a.Data, &got)
				} else if a.Metadata.Error != "memory.not_found" {
					continue
				}
				r.note(id, a, op{key: key}, got, begin, "get "+value)
			}
		} else {
			for done := false; !done; {
				a, ok := ask("command", "Memory.Set", fmt.Sprintf(`{"key":%q,"value":%q}`, key, value), `,"idempotencyKey":"`+value+`"`)
				if done = ok && a.Kind == "reply"; done {
					r.note(id, a, op{key: key, value: value, set: true}, "", begin, "set "+value)
					r.acked.Add(1)
					break
				}
				select {
				case <-stop: // its outcome stays unknown
					r.mu.Lock()
					r.history = append(r.history, porcupine.Operation{
						ClientId: id, Input: op{key: key, value: value, set: true}, Output: "", Call: int64(begin), Return: int64(1) << 62,
					})
					r.mu.Unlock()
					return
				case <-time.After(20 * time.Millisecond):
				}
			}
		}
		select {
		case <-stop:
			return
		default:
		}
	}
}

// answer is a frame of the kernel.
type answer struct {
	Kind     string          `json:"kind"`
	Data     json.RawMessage `json:"data"`
	Metadata struct {
		Error  string `json:"error"`
		Kernel struct {
			Seq          uint64 `json:"seq"`
			Acknowledged string `json:"acknowledged"`
		} `json:"kernel"`
	} `json:"metadata"`
}

func (r *rig) note(id int, a answer, in op, out string, begin time.Duration, call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, ok := r.seqs[a.Metadata.Kernel.Seq]; ok {
		r.t.Errorf("entry %d answered %q and %q", a.Metadata.Kernel.Seq, was, call)
	}
	r.seqs[a.Metadata.Kernel.Seq] = call
	r.history = append(r.history, porcupine.Operation{ClientId: id, Input: in, Output: out, Call: int64(begin), Return: int64(time.Since(r.begun))})
}

// fault breaks something, and repairs it.
func (r *rig) fault(rng *rand.Rand) string {
	i := rng.IntN(len(r.nodes))
	n, l := r.nodes[i], r.links[i]
	pause := func() { <-time.After(time.Duration(100+rng.IntN(900)) * time.Millisecond) }
	switch what := rng.IntN(8); what {
	case 0:
		r.kernel.Kill(r.t)
		r.start()
		return "kernel killed"
	case 1:
		r.kernel.Signal(r.t, syscall.SIGSTOP)
		pause()
		r.kernel.Signal(r.t, syscall.SIGCONT)
		return "kernel stopped for a while"
	case 2:
		n.process.Kill(r.t)
		pause()
		n.start(r.t)
		return "node killed"
	case 3:
		n.process.Signal(r.t, syscall.SIGSTOP)
		pause()
		n.process.Signal(r.t, syscall.SIGCONT)
		return "node stopped for a while"
	case 4, 5, 6:
		mode := int32(what - 3)
		l.set(mode)
		pause()
		l.set(passes)
		l.cut()
		return fmt.Sprintf("link in mode %d", mode)
	default:
		for _, n := range r.nodes {
			n.process.Kill(r.t)
		}
		r.kernel.Kill(r.t)
		for _, n := range r.nodes {
			n.start(r.t)
		}
		r.start()
		return "kernel and all nodes killed"
	}
}

// TestQuorumFaults breaks a kernel, its bus and what is between them, in the order of a seed, while clients set and get. Every acknowledged
// set is in the journal, no entry answers two calls, the stream is the journal, and what clients saw is linearizable. With
// PWOS_LONG=1 it goes on for 30 minutes, or as long as PWOS_LONG_FOR says.
func TestQuorumFaults(t *testing.T) {
	for _, nodes := range []int{1, 3} {
		t.Run(strconv.Itoa(nodes), func(t *testing.T) {
			t.Parallel()
			faults, long := 5, time.Duration(0)
			if os.Getenv("PWOS_LONG") == "1" {
				long = 30 * time.Minute
				if text := os.Getenv("PWOS_LONG_FOR"); text != "" {
					long = testkit.Value(time.ParseDuration(text))(t)
				}
			}
			seed := uint64(nodes)
			if long > 0 {
				seed = uint64(time.Now().UnixNano())
			}
			t.Logf("seed %d", seed)
			rng := rand.New(rand.NewPCG(seed, 1))
			r := newRig(t, nodes)
			stop := make(chan struct{})
			var clients sync.WaitGroup
			for id := range 4 {
				own := rand.New(rand.NewPCG(seed, uint64(id)+2))
				clients.Go(func() { r.client(id, own, stop) })
			}
			end := sync.OnceFunc(func() { close(stop); clients.Wait() })
			t.Cleanup(end)
			for n := 0; n < faults || time.Since(r.begun) < long; n++ {
				before := r.acked.Load()
				r.healed(before + 20)
				t.Logf("%v: %d acknowledged, then: %s", time.Since(r.begun).Round(time.Millisecond), r.acked.Load(), r.fault(rng))
			}
			r.healed(r.acked.Load() + 20)
			end()
			r.kernel.Stop(t)
			r.check()
		})
	}
}

// healed waits until that many sets are acknowledged: the cluster works again.
func (r *rig) healed(acked int64) {
	r.t.Helper()
	deadline := time.Now().Add(90 * time.Second)
	for r.acked.Load() < acked {
		if time.Now().After(deadline) {
			r.t.Fatalf("the cluster does not work again: %d acknowledged\n%.6000s", r.acked.Load(), r.kernel.Output())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// compared is a Sink that wants the stream to be the journal.
type compared struct{ journal []byte }

func (c *compared) Line(record *journal.Record) error {
	line, rest, _ := bytes.Cut(c.journal, []byte("\n"))
	if !bytes.Equal(line, record.Line) {
		return fmt.Errorf("entry %d of the stream is not the journal's", record.Seq)
	}
	c.journal = rest
	return nil
}

func (c *compared) Checkpoint(journal.Checkpoint) error { return nil }

func (r *rig) check() {
	r.t.Helper()
	text := r.place.Journal(r.t)
	var servers []string
	for _, n := range r.nodes {
		servers = append(servers, n.url)
	}
	conn, js, err := cluster.Dial(testkit.Context(r.t), cluster.Options{
		Name: "alpha", Servers: strings.Join(servers, ","), Key: r.key, Log: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	testkit.Must(r.t, err)
	defer conn.Close()
	sink := &compared{[]byte(text)}
	report := testkit.Value(cluster.Verify(testkit.Context(r.t), js, "alpha", []access.PublicKey{r.key.Key()}, sink))(r.t)
	if report.Finding != nil {
		r.t.Errorf("stream: %v", report.Finding)
	}
	if rest := bytes.Count(sink.journal, []byte("\n")); rest > 0 {
		r.t.Errorf("the stream lacks the journal's last %d entries", rest)
	}
	for seq, call := range r.seqs {
		if value, ok := strings.CutPrefix(call, "set "); ok && !strings.Contains(text, `"value":"`+value+`"`) {
			r.t.Errorf("the journal lacks the acknowledged %q of entry %d", call, seq)
		}
	}
	if result := porcupine.CheckOperationsTimeout(registers, r.history, time.Minute); result != porcupine.Ok {
		r.t.Errorf("%d calls are not linearizable: %s", len(r.history), result)
	}
	r.t.Logf("%d sets acknowledged, %d calls, %d entries, %v", r.acked.Load(), len(r.history), report.Entries, time.Since(r.begun).Round(time.Millisecond))
}
