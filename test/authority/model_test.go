package authority_test

import "slices"

// model is the kernel as plainly as PROTOCOL 5 and 6 and CAP can be said: who is whose child, who may do what, who holds
// how much. It knows nothing of how the kernel does it.
type model struct {
	pools    map[string]tenths // capacity by name
	mailbox  int               // messages a mailbox holds
	tick     int64
	procs    []*proc                     // the process with PID n at n-1
	held     map[int64]map[string]tenths // by PID, the operator's 0 among them
	messages int64                       // numbered so far
	memory   map[string]string           // value by key
	deltas   map[string]int64            // committed so far, by agent
	keys     map[keyOf]first
}

// proc is a process; it stays known when it has ended.
type proc struct {
	pid, parent int64
	agent       string
	birth       int64
	exit        *int64
	quota       map[string]tenths // when it was spawned
	token       *grant            // nil: none
	mail        int               // messages in its mailbox
}

// keyOf is an idempotency key of a caller; first is what came of its first use.
type keyOf struct {
	pid int64
	key string
}

type first struct {
	body   string
	answer answer
}

func newModel(pools map[string]tenths, mailbox int) *model {
	return &model{
		pools: pools, mailbox: mailbox, held: map[int64]map[string]tenths{},
		memory: map[string]string{}, deltas: map[string]int64{}, keys: map[keyOf]first{},
	}
}

const operator = 0

// proc is the process with this PID, nil where there never was one.
func (m *model) proc(pid int64) *proc {
	if pid < 1 || pid > int64(len(m.procs)) {
		return nil
	}
	return m.procs[pid-1]
}

func (m *model) token(pid int64) *grant {
	if p := m.proc(pid); p != nil {
		return p.token
	}
	return nil
}

// below reports whether pid is a child of ancestor, a child's child, and so on.
func (m *model) below(pid, ancestor int64) bool {
	for p := m.proc(pid); p != nil; p = m.proc(p.parent) {
		if p.parent == ancestor {
			return true
		}
	}
	return false
}

// may reports whether pid may call a syscall now (CAP 2: existence, expiry, permission).
func (m *model) may(pid int64, typ string) bool {
	if pid == operator {
		return true
	}
	t := m.token(pid)
	return t != nil && !t.expired(m.tick) && t.names(typ)
}

func (m *model) hold(pid int64, resource string, amount tenths) {
	if m.held[pid] == nil {
		m.held[pid] = map[string]tenths{}
	}
	m.held[pid][resource] += amount
}

// total is what is held of a pool in all.
func (m *model) total(resource string) (sum tenths) {
	for _, account := range m.held {
		sum += account[resource]
	}
	return sum
}

// subtree is the living among pid and those below it.
func (m *model) subtree(pid int64) []*proc {
	return slices.DeleteFunc(slices.Clone(m.procs), func(p *proc) bool {
		return p.exit != nil || (p.pid != pid && !m.below(p.pid, pid))
	})
}

// end ends a process and all below it: their tokens, what they hold and their mailboxes go (PROTOCOL 6).
func (m *model) end(pid int64) {
	at := m.tick
	for _, p := range m.subtree(pid) {
		p.exit, p.token, p.mail = &at, nil, 0
		delete(m.held, p.pid)
	}
}
