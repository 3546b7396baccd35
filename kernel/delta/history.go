package delta

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
