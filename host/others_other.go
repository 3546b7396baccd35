//go:build unix && !linux

package host

import (
	"bytes"
	"fmt"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// census finds marked processes, which do not exist on this system.
type census struct{}

func (*census) fresh() (map[mark][]int, error) { return map[mark][]int{}, nil }

func supported() error { return nil }

// settle does nothing: leftovers cannot be found on this system.
func settle(instance uint64) (mark, error) { return newMark(instance, 0, 0), nil }

// killSpoiled does nothing: there are no marks on this system.
func (*Host) killSpoiled(map[mark][]int) {}

// own counts all processes, since there are no marks.
func own(pids []int) int { return len(pids) }

// withoutInit returns the list: the program has no init.
func (*Process) withoutInit(pids []int) []int { return pids }

// killOthers does nothing: only the group can be reached, which its caller has killed.
func (*Process) killOthers() int { return 0 }

func (*Process) others() int { return 0 }

func (*Process) signalOthers(syscall.Signal) {}

// awaitStopped does nothing: only the group can be reached, and there is nothing to look at.
func (*Process) awaitStopped() {}

// Owner returns the agent in whose session a process is, or nil. A process that left its session is not recognised.
func (h *Host) Owner(osPID int) (*Process, error) {
	session, err := unix.Getsid(osPID)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", osPID, ErrGone)
	}
	for _, p := range h.Processes() {
		if p.OSPID() == session {
			return p, nil
		}
	}
	return nil, nil
}

// Peer is not supported: these systems have no common way to get the process number of a socket's peer.
func (*Host) Peer(syscall.RawConn) (*Process, error) {
	return nil, fmt.Errorf("look at peer: %w", ErrUnsupported)
}

// Unhosted returns nil: there are no marks on this system.
func Unhosted(syscall.RawConn) error { return nil }

// tell tells the guard that an agent's group started or ended. The caller holds h.mu.
func (h *Host) tell(p *Process) {
	pid := p.OSPID()
	if h.guardPipe == nil || pid == 0 {
		return
	}
	sign := "-"
	if h.agents[p.mark] == p {
		sign = "+"
	}
	_, _ = fmt.Fprintf(h.guardPipe, "%s%d\n", sign, pid) // a guard that ended is replaced, and gets all groups again
}

// tellAll tells a new guard of all groups. The caller holds h.mu.
func (h *Host) tellAll() {
	for _, p := range h.agents {
		h.tell(p)
	}
}

// orphans has the groups that the guard was told about.
type orphans struct {
	groups map[int]bool
	rest   []byte
}

func newOrphans(mark) *orphans { return &orphans{groups: map[int]bool{}} }

// told handles bytes from the daemon, whose lines may arrive in parts.
func (o *orphans) told(b []byte) {
	o.rest = append(o.rest, b...)
	for {
		line, rest, ok := bytes.Cut(o.rest, []byte{'\n'})
		if !ok {
			return
		}
		o.rest = rest
		if n, err := strconv.Atoi(string(line)); err == nil && n != 0 {
			o.groups[max(n, -n)] = n > 0
		}
	}
}

// end kills the groups.
func (o *orphans) end() {
	for group, runs := range o.groups {
		if runs {
			_ = syscall.Kill(-group, syscall.SIGKILL)
		}
	}
}
