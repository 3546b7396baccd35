package cluster_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
)

// node is a node of the bus.
type node struct {
	daemon  testkit.Daemon
	dir     string
	address string // behind the links
	peers   []*link
	process *testkit.Process
	away    bool // a fault has ended it
}

func (n *node) start(t *testing.T) { n.process, n.away = n.daemon.Launch(t), false }

func (n *node) kill(t *testing.T) {
	n.away = true
	n.process.End(t, syscall.SIGKILL)
}

// newBus starts count nodes of a program. A node reaches the earlier ones through links. The addresses that nodes report to
// each other lead nowhere, since each listens for the others at a separate address.
func (r *rig) newBus(count int, program string) {
	t := r.t
	type place struct{ clients, peers string }
	var places []place
	for i := range count {
		// Ports that are free at 127.0.0.1 may be those of connections before a node listens.
		places = append(places, place{freePort(t, "127.77.1."+strconv.Itoa(i+1)), freePort(t, "127.77.0."+strconv.Itoa(i+1))})
	}
	if count > 1 {
		r.nameNodes(count)
	}
	for i, at := range places {
		name := "n" + strconv.Itoa(i)
		n := &node{dir: filepath.Join(r.dir, name), address: at.clients}
		command := []string{program, "--dir", n.dir, "--members", r.members(), "--listen", at.clients}
		if count > 1 {
			command = append(command, "--name", name, "--peers", at.peers)
		}
		for _, other := range places[:i] {
			l := newLink(t, other.peers)
			n.peers = append(n.peers, l)
			command = append(command, "--route", l.address())
		}
		n.daemon = testkit.Daemon{Command: command, Dir: r.dir, Log: n.dir + ".log"}
		n.start(t)
		r.nodes = append(r.nodes, n)
	}
}

// nameNodes adds the keys of the nodes to the members file.
func (r *rig) nameNodes(count int) {
	t := r.t
	members := string(testkit.Value(os.ReadFile(r.members()))(t))
	for i := range count {
		name := "n" + strconv.Itoa(i)
		dir := filepath.Join(r.dir, name)
		testkit.Must(t, os.Mkdir(dir, 0o700))
		members += `node="` + name + `" ` + testkit.Value(access.OpenHostKey(dir))(t).Public() + "\n"
	}
	testkit.WriteFile(t, r.members(), members)
}

func freePort(t *testing.T, host string) string {
	l := testkit.Value(net.Listen("tcp", net.JoinHostPort(host, "0")))(t)
	defer l.Close()
	return l.Addr().String()
}

// urls returns the addresses of the nodes behind all links.
func (r *rig) urls() string {
	var all []string
	for _, n := range r.nodes {
		all = append(all, "nats://"+n.address)
	}
	return strings.Join(all, ",")
}

// older copies the disk of a node, and returns a function that replaces the disk with the copy. The node is stopped for
// both.
func (n *node) older(t *testing.T) (restore func()) {
	copied := n.dir + ".older"
	n.kill(t)
	testkit.Must(t, os.RemoveAll(copied)) // of an earlier attempt, during which the leader ended
	testkit.Must(t, os.CopyFS(copied, os.DirFS(n.dir)))
	n.start(t)
	return func() {
		n.kill(t)
		testkit.Must(t, os.RemoveAll(n.dir))
		testkit.Must(t, os.Rename(copied, n.dir))
		n.start(t)
	}
}

// diedAlone names the nodes that have ended without a fault.
func (r *rig) diedAlone() error {
	for _, n := range r.nodes {
		select {
		case <-n.process.Ended():
			if !n.away {
				return fmt.Errorf("the node %s has ended without a fault\n%.4000s", n.dir, n.process.Output())
			}
		default:
		}
	}
	return nil
}
