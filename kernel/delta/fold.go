package delta

import "github.com/tidwall/btree"

// sums are amounts by name. They are never changed: adding makes others. nil is none.
type sums = btree.Map[string, float64]

// fold is what a beginning of a log comes to. It is a value: folds are kept and compared, never changed.
type fold struct {
	state                    *object
	resources, relationships *sums
	deltas, violations       int64
}

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

// history is what a log folds to: now, and at some points on the way, from which any other is not far.
type history struct {
	now    fold
	stops  []fold // stops[i] is the fold of the first (i+1)*stride deltas
	stride int64
}

const (
	firstStride = 16
	// mostStops bounds the memory that a history takes: when there are more, every other one is given up.
	mostStops = 64
)

// newHistory folds a log from its beginning.
func newHistory(log []delta) *history {
	h := &history{stride: firstStride}
	for i := range log {
		h.add(log[i].body)
	}
	return h
}

// add goes on by one delta, in a time that does not depend on how many there were.
func (h *history) add(body string) {
	h.now = h.now.add(body)
	if h.now.deltas%h.stride != 0 {
		return
	}
	if h.stops = append(h.stops, h.now); len(h.stops) > mostStops {
		h.thin()
	}
}

// thin doubles the stride: of the stops, those remain that lie a whole number of new strides from the beginning.
func (h *history) thin() {
	half := h.stops[:0]
	for i := 1; i < len(h.stops); i += 2 {
		half = append(half, h.stops[i])
	}
	clear(h.stops[len(half):])
	h.stops, h.stride = half, 2*h.stride
}

// cut goes back to log, a beginning of what was folded.
func (h *history) cut(log []delta) {
	h.now = h.at(log)
	stops := h.stops[:int64(len(log))/h.stride]
	clear(h.stops[len(stops):])
	h.stops = stops
}

// at returns the fold of log, a beginning of what was folded. It takes at most a stride of steps.
func (h *history) at(log []delta) fold {
	n := int64(len(log))
	if n == h.now.deltas {
		return h.now
	}
	var f fold
	if i := n / h.stride; i > 0 {
		f = h.stops[i-1]
	}
	for _, d := range log[f.deltas:] {
		f = f.add(d.body)
	}
	return f
}
