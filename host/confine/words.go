package confine

import (
	"errors"
	"strconv"
)

// errWords says that words do not encode a plan.
var errWords = errors.New("the words are no plan")

// Words encodes the plan for the process that carries it out, in a form that needs no parser.
func (p *Plan) Words() []string {
	w := words{
		itoa(p.ABI), flag(p.Filter), flag(p.Notify), flag(p.Mounts), flag(p.Overlay), flag(p.Network), flag(p.Link), flag(p.IPv6), flag(p.IPC), flag(p.Ptys), flag(p.PIDs), flag(p.User),
		flag(p.Strict), p.Net, p.Dir, flag(p.ReadOnly), itoa(p.Upstreams), p.Sockets, flag(p.Terminal), flag(p.Execs),
	}
	w.list(p.Writable)
	w.list(p.Readable)
	w.list(p.Unread)
	w.ports(p.Ports)
	w.ports(p.Locals)
	w = append(w, flag(p.Publishes), itoa(len(p.layers)))
	for _, l := range p.layers {
		w = append(w, string(l.kind), l.path, l.source, flag(l.write), flag(l.optional), flag(l.held), l.content, strconv.FormatInt(l.size, 10))
		w.list(l.names)
	}
	return w
}

// ReadPlan decodes the words of Words.
func ReadPlan(from []string) (*Plan, error) {
	r := &reader{rest: from}
	p := &Plan{Means: Means{
		ABI: r.number(), Filter: r.flag(), Notify: r.flag(), Mounts: r.flag(), Overlay: r.flag(), Network: r.flag(), Link: r.flag(), IPv6: r.flag(), IPC: r.flag(), Ptys: r.flag(), PIDs: r.flag(), User: r.flag(),
	}}
	p.Strict, p.Net, p.Dir, p.ReadOnly, p.Upstreams, p.Sockets = r.flag(), r.word(), r.word(), r.flag(), r.number(), r.word()
	p.Terminal, p.Execs = r.flag(), r.flag()
	p.Writable, p.Readable, p.Unread = r.list(), r.list(), r.list()
	p.Ports, p.Locals, p.Publishes = r.ports(), r.ports(), r.flag()
	for n := r.number(); n > 0 && !r.failed; n-- {
		l := layer{kind: kind(r.word()), path: r.word(), source: r.word(), write: r.flag(), optional: r.flag(), held: r.flag(), content: r.word(), size: int64(r.number())}
		l.names = r.list()
		p.layers = append(p.layers, l)
	}
	if r.failed || len(r.rest) > 0 {
		return nil, errWords
	}
	return p, nil
}

type words []string

func (w *words) list(texts []string) { *w = append(append(*w, itoa(len(texts))), texts...) }

func (w *words) ports(ports []uint16) {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = itoa(int(port))
	}
	w.list(texts)
}

func flag(set bool) string {
	if set {
		return "1"
	}
	return "0"
}

// reader reads words. After a read without a word left it has failed.
type reader struct {
	rest   []string
	failed bool
}

func (r *reader) word() string {
	if len(r.rest) == 0 {
		r.failed = true
		return ""
	}
	word := r.rest[0]
	r.rest = r.rest[1:]
	return word
}

func (r *reader) number() int {
	n, err := strconv.Atoi(r.word())
	r.failed = r.failed || err != nil || n < 0
	return n
}

func (r *reader) flag() bool { return r.word() == "1" }

func (r *reader) ports() (ports []uint16) {
	for _, text := range r.list() {
		port, err := strconv.ParseUint(text, 10, 16)
		r.failed = r.failed || err != nil
		ports = append(ports, uint16(port))
	}
	return ports
}

func (r *reader) list() []string {
	n := r.number()
	if n > len(r.rest) {
		r.failed = true
	}
	if r.failed {
		return nil
	}
	list := r.rest[:n]
	r.rest = r.rest[n:]
	return list
}
