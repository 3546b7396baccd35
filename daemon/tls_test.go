package daemon_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/daemon"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/tlssock"
)

// startListening starts a daemon that admits the keys of the lines, also over TLS.
func startListening(t *testing.T, change func(*config.Config), me *access.Signer, lines ...string) *house {
	t.Helper()
	dir := testkit.Dir(t)
	h := &house{config: settingsIn(dir), known: access.KnownKernels{Path: dir + "/c/known_kernels"}}
	h.config.AuthorizedKeys = dir + "/authorized_keys"
	h.config.Listen.TLS = "127.0.0.1:0"
	if change != nil {
		change(&h.config)
	}
	h.authorize(t, append(lines, me.Key().String())...)
	h.running = run(t, h.config)
	return h
}

// remote is a client that has logged in over TLS.
type remote struct {
	net.Conn
	*schema.LineReader
}

func (remote) Dialect() schema.Dialect { return schema.OsMessage }
func (remote) LineLimit() int          { return schema.MaxEventLine }

// dialTLS logs in with a key at the address that the daemon names.
func (h *house) dialTLS(t *testing.T, me, key *access.Signer) remote {
	t.Helper()
	near := h.login(t, me, h.KernelSocket)
	parameters := string(near.ask("query", "Memory.Get", `{"key":"proc/cmdline"}`).Data)
	testkit.Must(t, near.nc.Close())
	_, rest, _ := strings.Cut(parameters, `"listen":"`)
	address, _, ok := strings.Cut(rest, `"`)
	if !ok {
		t.Fatalf("no address in %s", parameters)
	}
	session, channel, err := tlssock.Dial(testkit.Context(t), "tls://"+address)
	testkit.Must(t, err)
	t.Cleanup(func() { _ = session.Close() }) // perhaps a second time
	testkit.Must(t, session.SetDeadline(time.Now().Add(testkit.Patience)))
	r := remote{session, schema.NewLineReader(session, schema.MaxEventLine)}
	testkit.Must(t, access.ClientPrologue(testkit.Context(t), r, h.signOver(t, key, channel)))
	return r
}

// ask sends one message and returns its answer.
func (r remote) ask(t *testing.T, kind, typ, data string) schema.Message {
	t.Helper()
	testkit.Value(fmt.Fprintf(r, `{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"q","timestamp":0}}`+"\n", kind, typ, data))(t)
	m, failure := schema.Decode(testkit.Value(r.Next())(t), schema.OsMessage)
	if failure != nil {
		t.Fatal(failure)
	}
	m.Data = []byte(string(m.Data))
	return m
}

// TestListen: who logs in over TLS is whom the key says, and a refused login is recorded with its address.
func TestListen(t *testing.T) {
	t.Parallel()
	me, agent, stranger := newKey(t), newKey(t), newKey(t)
	h := startListening(t, nil, me, `agent="scout",allow="Memory.*" `+agent.Key().String())

	r := h.dialTLS(t, me, me)
	if a := r.ask(t, "command", "Memory.Set", `{"key":"k","value":"`+strings.Repeat("x", 100_000)+`"}`); a.Kind != schema.KindReply || !strings.Contains(a.Meta.Kernel, `"pid":0`) {
		t.Errorf("the operator's call: %s %s", a.Data, a.Meta.Kernel)
	}
	scout := h.dialTLS(t, me, agent)
	if a := scout.ask(t, "command", "Syscall.Spawn", `{"child_agent_id":"x"}`); !strings.Contains(string(a.Data), `"code":403`) {
		t.Errorf("an agent's call that it was not granted: %s", a.Data)
	}
	other := h.dialTLS(t, me, stranger)
	if line := testkit.Value(other.Next())(t); !strings.Contains(string(line), `"code":401`) {
		t.Errorf("a stranger gets %s", line)
	}
	if a := r.ask(t, "query", "Audit.Log", `{"type":"Kernel.LoginFailed"}`); !strings.Contains(string(a.Data), `"address":"127.0.0.1"`) {
		t.Errorf("the record of the refused login: %s", a.Data)
	}
	h.stop()
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end of the daemon a client reads %v", err)
	}
	testkit.Must(t, r.Close())
	testkit.Must(t, testkit.Receive(t, h.ended, "the daemon's end"))
}

// TestListenWithoutKeys: in open mode there is no listener, and the kernel says why.
func TestListenWithoutKeys(t *testing.T) {
	t.Parallel()
	probe := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	address := probe.Addr().String()
	testkit.Must(t, probe.Close())
	r := start(t, func(c *config.Config) { c.Listen.TLS = address })
	p := dial(t, r.KernelSocket)
	p.want("query", "Audit.Metrics", `{}`, "does not listen at "+address+", since it has no authorized_keys")
	p.want("query", "Memory.Get", `{"key":"proc/cmdline"}`, `"sync":`)
	if conn, err := net.Dial("tcp", address); err == nil {
		_ = conn.Close()
		t.Error("something listens there")
	}
}

// TestListenWhereSomebodyDoes: an address that is taken is an error of the start, which names the setting.
func TestListenWhereSomebodyDoes(t *testing.T) {
	t.Parallel()
	taken := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	dir := testkit.Dir(t)
	cfg := settingsIn(dir)
	cfg.AuthorizedKeys, cfg.Listen.TLS = dir+"/authorized_keys", taken.Addr().String()
	testkit.WriteFile(t, cfg.AuthorizedKeys, newKey(t).Key().String()+"\n")
	d := daemon.New(cfg, nil, discard())
	if err := d.Open(testkit.Context(t)); err == nil || !strings.Contains(err.Error(), "listen.tls") {
		t.Errorf("the start ends with %v", err)
	}
	testkit.Must(t, d.Close())
}

// TestRemoteClientKeepsTheDaemon: a client over TLS counts for the idle timeout.
func TestRemoteClientKeepsTheDaemon(t *testing.T) {
	t.Parallel()
	me := newKey(t)
	var h *house
	r, first, limit := kept(t, func(limit time.Duration) *running {
		h = startListening(t, func(c *config.Config) { c.IdleTimeout = config.Duration(limit) }, me)
		return h.running
	})
	far := h.dialTLS(t, me, me)
	testkit.Must(t, first.nc.Close())
	select {
	case err := <-r.ended:
		t.Fatalf("the daemon ended (%v) with a session open", err)
	case <-time.After(3 * limit):
	}
	far.ask(t, "query", "Syscall.Ping", `{"payload":1}`)
	testkit.Must(t, far.Close())
	testkit.Must(t, testkit.Receive(t, r.ended, "the idle daemon's end"))
}
