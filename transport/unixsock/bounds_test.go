package unixsock_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// hosted is a server that takes each peer for the agent of the field.
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

// enter connects as an agent and completes the prologue.
func (h *hosted) enter(t *testing.T, agent int64, path string) net.Conn {
	t.Helper()
	nc, line := h.dialAs(t, agent, path)
	if !strings.Contains(line, "Syscall.Authenticate") {
		t.Fatalf("agent %d read %s", agent, line)
	}
	_, err := nc.Write([]byte(replyMessage + "\nhello\n"))
	must(t, err)
	must(t, readLine(nc))
	return nc
}

// refused checks that a further connection is closed after one error with that code and text.
func (h *hosted) refused(t *testing.T, agent int64, path, code, why string) {
	t.Helper()
	nc, line := h.dialAs(t, agent, path)
	if !strings.Contains(line, code) || !strings.Contains(line, why) {
		t.Errorf("agent %d read %s, want %s and %q", agent, line, code, why)
	}
	if rest, err := io.ReadAll(nc); err != nil || len(rest) != 0 {
		t.Errorf("after the refusal: %q, %v", rest, err)
	}
}

// TestConnectionsOfAnAgent: the connections of an agent are counted over both sockets. A further one is closed after an
// error, and other clients are not affected.
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
	for { // until the server has counted the end
		nc, line := h.dialAs(t, 7, h.KernelSocket)
		if strings.Contains(line, "Syscall.Authenticate") {
			break
		}
		must(t, nc.Close())
		time.Sleep(time.Millisecond)
	}
}

// TestProloguesOfAnAgent: connections that never answer count only against the agent, so the operator is admitted.
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

// TestFloodIsReported: hundreds of failed connections of an agent are reported as its flood.
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
				t.Errorf("the flood is of agent %d", agent)
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

// keyedAgent is an Authenticator that takes every client for that agent.
type keyedAgent int64

func (a keyedAgent) Offer(context.Context, access.Peer, access.Channel) (access.Offer, error) {
	return access.Offer{Data: []byte(`{}`), Verify: func([]byte) (access.Identity, error) {
		return access.Identity{Agent: int64(a)}, nil
	}}, nil
}

// TestConnectionsOfAKeysAgent: a connection counts for the agent of its key after the login.
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

// TestDescriptorsAreReserved: a server without free descriptors refuses agents, and serves the operator with reserved
// ones.
func TestDescriptorsAreReserved(t *testing.T) {
	t.Parallel()
	const role = "UNIXSOCK_TEST_EXHAUSTED"
	if os.Getenv(role) == "" {
		runAs(t, role)
		return
	}
	h := startHosted(t, unixsock.DefaultBounds())
	agents := h.enter(t, 7, h.KernelSocket)
	exhaust(t)
	// The operator's end of the connection is in this process too.
	free(t, 1)
	h.enter(t, 0, h.KernelSocket)
	free(t, 1)
	h.refused(t, 7, h.KernelSocket, `"code":429`, "no more connections for agents")
	_, err := agents.Write([]byte("still\n"))
	must(t, err)
	must(t, readLine(agents))
}

// runAs runs the calling test alone, in a process of its own with role in the environment.
func runAs(t *testing.T, role string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), role+"=1", "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

var taken []*os.File

// exhaust uses up the descriptors of the process.
func exhaust(t *testing.T) {
	t.Helper()
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 100, Max: 100}))
	for {
		file, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			return
		}
		must(t, err)
		taken = append(taken, file)
	}
}

// free closes n of these descriptors.
func free(t *testing.T, n int) {
	t.Helper()
	for range n {
		must(t, taken[len(taken)-1].Close())
		taken = taken[:len(taken)-1]
	}
}
