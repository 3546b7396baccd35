package host

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/promptware-os/pwos/host/confine"
)

// Place is a file or directory that is in a program's file tree although its surroundings are hidden.
type Place = confine.Place

// Exec is what a process of an agent is about to execute.
type Exec = confine.Exec

// Means are a machine's means to confine programs.
type Means = confine.Means

// Level names what a default sandbox enforces on this machine: "namespaces+landlock:v7", "none".
func (h *Host) Level() string { return h.means.Level() }

// Gaps lists for the operator what a default sandbox does not prevent on this machine.
func (h *Host) Gaps() []string { return h.means.Gaps() }

// levelOff is the level of a program that is not confined.
const levelOff = "off"

// confine plans how a command is confined. A nil plan means that it is not.
func (c Command) confine(h *Host, has Means, program string) (*confine.Plan, string, error) {
	if c.Sandbox == SandboxOff {
		return nil, levelOff, nil
	}
	plan, err := confine.New(c.request(h, program), has)
	if errors.Is(err, confine.ErrRefused) {
		return nil, "", fmt.Errorf("%w: %w", ErrSandbox, err)
	}
	if err != nil {
		return nil, "", err
	}
	plan.Execs = c.Exec != nil
	h.veils.Share(plan)
	return plan, has.Level(), nil
}

// request says how a command is to be confined.
func (c Command) request(h *Host, program string) confine.Request {
	r := confine.Request{
		Level: string(c.Sandbox), Net: string(c.Net), Dir: c.Dir, ReadOnly: c.ReadOnly, Read: c.Read, Write: c.Write, Hide: c.Hide, Hold: c.Hold,
		Private: c.Private, Places: c.Places, Copies: c.Copies, Homes: h.secrets.homes(c.User), AllowGaps: c.AllowGaps, Ports: c.Ports, Locals: c.Locals, Publishes: c.Publishes, Upstreams: len(c.Upstreams), Tmp: c.Tmp,
	}
	if c.Review != nil {
		r.Review = *c.Review
	}
	r.Sockets, r.User, r.Home = c.Sockets.Target, c.user(), c.home()
	if c.Share != nil {
		r.Share = confine.Share{Target: c.Share.Target, Source: c.Share.Source, Bytes: c.Share.Bytes}
	}
	if c.user() == 0 {
		r.RootOnly = h.rootOnly.paths()
	}
	if c.ShowProgram {
		r.Program = program
	}
	return r
}

// user returns the number of the user that the program runs as.
func (c Command) user() int {
	if c.User != nil {
		return c.User.UID
	}
	return os.Geteuid()
}

// rootOnlyAge is how old the list of what only user 0 may read may be.
const rootOnlyAge = time.Minute

// rootOnly is the list of what only user 0 may read. Making it takes about as long as the rest of a start.
type rootOnly struct {
	mu   sync.Mutex
	list []string
	at   time.Time
}

func (r *rootOnly) paths() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.at) > rootOnlyAge {
		r.list, r.at = confine.RootOnly(), time.Now()
	}
	return r.list
}
