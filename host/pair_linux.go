package host

// spoiled represents all broken pairs. newMark never returns it.
const spoiled mark = 1 << 63

// host returns the part of the mark that all agents of one incarnation share.
func (m mark) host() mark { return m &^ mostSequence }

// limits returns the two hard limits that store the mark.
func (m mark) limits() (locks, rss uint64) {
	return markBase + uint64(m), markBase + mostMark - uint64(m)
}

// readMark returns the mark of two hard limits, 0 if no host has set them.
func readMark(locks, rss uint64) (mark, bool) {
	m := mark(locks - markBase)
	if locks < markBase || m > mostMark {
		return 0, false
	}
	_, want := m.limits()
	return m, rss == want
}
