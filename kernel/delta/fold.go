package delta

import (
	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// sums are amounts by name. They are immutable. nil is none.
type sums = btree.Map[string, float64]

// tally is the sum of the amounts of a prefix of a log. It is a value, as a fold is.
type tally struct {
	resources, relationships *sums
	deltas                   int64
	bytes                    int64 // of the deltas
}

func (t tally) count() int64 { return t.deltas }

// add returns the tally with one more delta; it skips the delta's changes.
func (t tally) add(body string) tally {
	r := newReader([]byte(afterChanges(body)))
	t.deltas++
	t.bytes += int64(len(body))
	t.resources = addAmounts(t.resources, r)
	t.relationships = addAmounts(t.relationships, r)
	return t
}

// fold is the state after a prefix of a log. It is a value: folds are kept and compared, never changed.
type fold struct {
	state                    *object
	resources, relationships *sums
	deltas, violations       int64
}

func (f fold) count() int64 { return f.deltas }

// add returns the fold with one more delta. Each amount is added to its own sum in the order of the log, so that the
// same log gives the same sums, to the last bit.
func (f fold) add(body string) fold {
	r := newReader([]byte(body))
	f.deltas++
	f.violations += int64(r.tag())
	if changes := r.Bytes(); len(changes) > len("{}") {
		f.state = merge(f.state, changes)
	}
	f.resources = addAmounts(f.resources, r)
	f.relationships = addAmounts(f.relationships, r)
	return f
}

// output is the fold as an answer.
func (f fold) output() *schema.FoldedMemory {
	return &schema.FoldedMemory{
		State: appendObject(nil, f.state), Resources: amountsOf(f.resources), Relationships: amountsOf(f.relationships),
		Deltas: f.deltas, Violations: f.violations,
	}
}

// addAmounts returns the sums with the next amounts of r added. It copies them once, before the first.
func addAmounts(s *sums, r *reader) *sums {
	copied := false
	r.amounts(func(name string, amount float64) {
		switch {
		case s == nil:
			s = &sums{}
		case !copied:
			s = s.Copy()
		}
		copied = true
		s.Set(name, sum(s, name)+amount)
	})
	return s
}

// sum returns the sum of a name, 0 if it has none.
func sum(s *sums, name string) float64 {
	if s == nil {
		return 0
	}
	amount, _ := s.Get(name)
	return amount
}

// amountsOf returns sums as a map. They are finite: see bounded.
func amountsOf(s *sums) map[string]float64 {
	amounts := map[string]float64{}
	if s != nil {
		s.Scan(func(name string, amount float64) bool {
			amounts[name] = amount
			return true
		})
	}
	return amounts
}

// folded is a fold or a tally.
type folded[F any] interface {
	add(body string) F
	count() int64 // deltas
}

// history is the fold of a log at its end and at some stops before, from which any other prefix is near.
type history[F folded[F]] struct {
	now    F
	stops  []F // stops[i] is the fold of the first (i+1)*stride deltas
	stride int64
}

const (
	firstStride = 16
	// mostStops bounds the memory of a history: when there are more, every other one is dropped.
	mostStops = 64
)

// add appends a delta, in constant time.
func (h *history[F]) add(body string) {
	if h.stride == 0 {
		h.stride = firstStride
	}
	h.now = h.now.add(body)
	if h.now.count()%h.stride != 0 {
		return
	}
	if h.stops = append(h.stops, h.now); len(h.stops) > mostStops {
		h.thin()
	}
}

// thin doubles the stride and drops the stops between.
func (h *history[F]) thin() {
	half := h.stops[:0]
	for i := 1; i < len(h.stops); i += 2 {
		half = append(half, h.stops[i])
	}
	clear(h.stops[len(half):])
	h.stops, h.stride = half, 2*h.stride
}

// cut goes back to log, a prefix of what was folded.
func (h *history[F]) cut(log []delta) {
	h.now = h.at(log)
	stops := h.stops[:int64(len(log))/max(h.stride, 1)]
	clear(h.stops[len(stops):])
	h.stops = stops
}

// at returns the fold of log, a prefix of what was folded. It takes at most a stride of steps.
func (h *history[F]) at(log []delta) F {
	n := int64(len(log))
	if n == h.now.count() {
		return h.now
	}
	var f F
	if i := n / h.stride; i > 0 {
		f = h.stops[i-1]
	}
	for _, d := range log[f.count():] {
		f = f.add(d.body)
	}
	return f
}
