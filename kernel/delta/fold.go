package delta

import (
	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// sums are amounts by name. They are never changed: adding makes others. nil is none.
type sums = btree.Map[string, float64]

// tally is what the amounts of a beginning of a log come to. It is a value, as a fold is.
type tally struct {
	resources, relationships *sums
	deltas                   int64
	bytes                    int64 // of the deltas
}

func (t tally) count() int64 { return t.deltas }

// add returns the tally with one more delta, whose changes it passes over.
func (t tally) add(body string) tally {
	r := &reader{rest: []byte(afterChanges(body))}
	t.deltas++
	t.bytes += int64(len(body))
	t.resources = addAmounts(t.resources, r)
	t.relationships = addAmounts(t.relationships, r)
	return t
}

// fold is what a beginning of a log comes to. It is a value: folds are kept and compared, never changed.
type fold struct {
	state                    *object
	resources, relationships *sums
	deltas, violations       int64
}

func (f fold) count() int64 { return f.deltas }

// add returns the fold with one more delta. Amounts are added in the order of the log, each to its own sum, so that the
// same log always gives the same sums, to the last bit.
func (f fold) add(body string) fold {
	r := &reader{rest: []byte(body)}
	f.deltas++
	f.violations += int64(r.tag())
	if changes := r.text(); len(changes) > len("{}") {
		f.state = merge(f.state, changes)
	}
	f.resources = addAmounts(f.resources, r)
	f.relationships = addAmounts(f.relationships, r)
	return f
}

// output is what is answered of a fold.
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

// sum returns what a name has come to, 0 where it has nothing.
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

// folded is what a log comes to, a fold or a tally.
type folded[F any] interface {
	add(body string) F
	count() int64 // deltas
}

// history is what a log comes to: now, and at some points on the way, from which any other is not far.
type history[F folded[F]] struct {
	now    F
	stops  []F // stops[i] is of the first (i+1)*stride deltas
	stride int64
}

const (
	firstStride = 16
	// mostStops bounds the memory that a history takes: when there are more, every other one is given up.
	mostStops = 64
)

// add goes on by one delta, in a time that does not depend on how many there were.
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

// thin doubles the stride: of the stops, those remain that lie a whole number of new strides from the beginning.
func (h *history[F]) thin() {
	half := h.stops[:0]
	for i := 1; i < len(h.stops); i += 2 {
		half = append(half, h.stops[i])
	}
	clear(h.stops[len(half):])
	h.stops, h.stride = half, 2*h.stride
}

// cut goes back to log, a beginning of what was folded.
func (h *history[F]) cut(log []delta) {
	h.now = h.at(log)
	stops := h.stops[:int64(len(log))/max(h.stride, 1)]
	clear(h.stops[len(stops):])
	h.stops = stops
}

// at returns what log, a beginning of what was folded, comes to. It takes at most a stride of steps.
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
