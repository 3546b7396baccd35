package unixsock_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// hosted is a server whose peers are taken for whom the test says.
type hosted struct {
	*running
	agent  atomic.Int64 // 0: the operator
	floods chan int64
}

func startHosted(t *testing.T, b unixsock.Bounds) *hosted {
	t.Helper()
	h := &hosted{floods: make(chan int64, 64)}
	h.running = start(t, unixsock.ServerConfig{
		Handler: echo, Bounds: b, Flood: func(agent int64) { h.floods <- agent },
		Identify: func(nc net.Conn) (access.Peer, error) {
			peer, err := unixsock.PeerOf(nc)
			peer.Agent = h.agent.Load()
			return peer, err
		},
	})
	return h
}

// dialAs connects as an agent and returns the first frame with the connection.
func (h *hosted) dialAs(t *testing.T, agent int64, path string) (net.Conn, string) {
	t.Helper()
	h.agent.Store(agent)
	nc, err := unixsock.Dial(t.Context(), path)
	must(t, err)
	t.Cleanup(func() { nc.Close() })
	must(t, nc.SetDeadline(time.Now().Add(time.Minute)))
	line, err := bufio.NewReader(nc).ReadString('\n')
	must(t, err)
	return nc, line
}

// enter is dialAs that goes through the prologue.
func (h *hosted) enter(t *testing.T, agent int64, path string) net.Conn {
	t.Helper()
	nc, line := h.dialAs(t, agent, path)
	if !strings.Contains(line, "Syscall.Authenticate") {
		t.Fatalf("agent %d was told %s", agent, line)
	}
	_, err := nc.Write([]byte(replyMessage + "\nhello\n"))
	must(t, err)
	must(t, readLine(nc))
	return nc
}

// refused checks that one more connection is closed with one error that says why.
func (h *hosted) refused(t *testing.T, agent int64, path, code, why string) {
	t.Helper()
	nc, line := h.dialAs(t, agent, path)
	if !strings.Contains(line, code) || !strings.Contains(line, why) {
		t.Errorf("agent %d was told %s, want %s and %q", agent, line, code, why)
	}
	if rest, err := io.ReadAll(nc); err != nil || len(rest) != 0 {
		t.Errorf("behind the refusal came %q, %v", rest, err)
	}
}

// The connections of an agent are counted over both sockets; what is over the bound is closed, with a word, and nobody else
// is concerned.
func TestConnectionsOfAnAgent(t *testing.T) {
	t.Parallel()
	h := startHosted(t, unixsock.Bounds{Connections: 4, Prologues: 2, Agents: 5})
	var own []net.Conn
	for _, path := range []string{h.KernelSocket, h.EventsSocket, h.KernelSocket, h.EventsSocket} {
		own = append(own, h.enter(t, 7, path))
	}
	h.refused(t, 7, h.KernelSocket, `"code":429`, "4 connections")
	h.refused(t, 7, h.EventsSocket, `"code":"QUOTA_EXCEEDED"`, "4 connections")
	h.enter(t, 8, h.KernelSocket)
	h.refused(t, 9, h.KernelSocket, `"code":429`, "no more connections for agents")
	h.enter(t, 0, h.KernelSocket)

	must(t, own[0].Close())
	for { // until the server has noticed
		nc, line := h.dialAs(t, 7, h.KernelSocket)
		if strings.Contains(line, "Syscall.Authenticate") {
			break
		}
		must(t, nc.Close())
		time.Sleep(time.Millisecond)
	}
}

// An agent's silent connections take only its places, so the operator is admitted.
func TestProloguesOfAnAgent(t *testing.T) {
	t.Parallel()
	h := startHosted(t, unixsock.Bounds{Connections: 32, Prologues: 3, Agents: 1000})
	for range 3 {
		h.dialAs(t, 7, h.KernelSocket)
	}
	h.refused(t, 7, h.KernelSocket, `"code":429`, "3 connections that have not answered Syscall.Authenticate")
	h.refused(t, 7, h.EventsSocket, `"code":"QUOTA_EXCEEDED"`, "3 connections")
	h.enter(t, 0, h.KernelSocket)
	h.enter(t, 8, h.KernelSocket)
}

// Connections of an agent that fail by the hundred are reported as a flood, with the agent.
func TestFloodIsReported(t *testing.T) {
	t.Parallel()
	h := startHosted(t, unixsock.Bounds{Connections: 1, Prologues: 1, Agents: 1})
	h.enter(t, 7, h.KernelSocket)
	h.agent.Store(7)
	stop := time.After(time.Minute)
	for {
		nc, err := unixsock.Dial(t.Context(), h.KernelSocket)
		must(t, err)
		must(t, nc.Close())
		select {
		case agent := <-h.floods:
			if agent != 7 {
				t.Errorf("agent %d is said to flood", agent)
			}
			if text := h.log.String(); strings.Count(text, "connections of an agent are refused") > 60 {
				t.Errorf("the log has %d lines on it", strings.Count(text, "\n"))
			}
			return
		case <-stop:
			t.Fatal("no flood was reported")
		default:
		}
	}
}

// keyedAgent is a daemon's check that takes everybody for the agent of a key.
type keyedAgent int64

func (a keyedAgent) Offer(context.Context, access.Peer, string) (access.Offer, error) {
	return access.Offer{Data: []byte(`{}`), Verify: func([]byte) (access.Identity, error) {
		return access.Identity{Agent: int64(a)}, nil
	}}, nil
}

// A connection counts as an agent's once its key is known.
func TestConnectionsOfAKeysAgent(t *testing.T) {
	t.Parallel()
	server := start(t, unixsock.ServerConfig{
		Handler: echo, Authenticator: keyedAgent(7), Bounds: unixsock.Bounds{Connections: 2, Prologues: 1, Agents: 10},
	})
	for i := range 3 {
		nc, err := unixsock.Dial(t.Context(), server.KernelSocket)
		must(t, err)
		t.Cleanup(func() { nc.Close() })
		must(t, readLine(nc))
		_, err = nc.Write([]byte(replyMessage + "\n" + strconv.Itoa(i) + "\n"))
		must(t, err)
		line, err := bufio.NewReader(nc).ReadString('\n')
		must(t, err)
		if want := i == 2; strings.Contains(line, "2 connections") != want {
			t.Errorf("connection %d got %s", i, line)
		}
	}
}

// A server without free descriptors refuses agents, and serves the operator with reserved ones.
func TestDescriptorsAreHeldBack(t *testing.T) {
	t.Parallel()
	const role = "UNIXSOCK_TEST_EXHAUSTED"
	if os.Getenv(role) == "" {
		runAs(t, role)
		return
	}
	h := startHosted(t, unixsock.DefaultBounds())
	agents := h.enter(t, 7, h.KernelSocket)
	exhaust(t)
	// The operator's end of a connection takes a descriptor of this same process.
	free(t, 1)
	h.enter(t, 0, h.KernelSocket)
	free(t, 1)
	h.refused(t, 7, h.KernelSocket, `"code":429`, "no more connections for agents")
	_, err := agents.Write([]byte("still\n"))
	must(t, err)
	must(t, readLine(agents))
}
