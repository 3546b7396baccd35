package poll

// NewEpoll is New on any build.
func NewEpoll() (Poller, error) { return newEpoll() }

// Finds reports whether an operating system's event of the stream event is attributed to the stream s.
func Finds(p Poller, event, s Stream) bool {
	e := p.(*epoll)
	of := event.(*epollStream)
	e.events[0].Fd, e.events[0].Pad = of.slot, of.age<<1
	e.begin()
	e.end(1)
	found := e.ready[0]
	e.ready[0] = nil
	return found != nil && Stream(found) == s
}
