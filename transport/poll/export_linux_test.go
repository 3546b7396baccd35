package poll

// NewEpoll is New, whatever the build tags.
func NewEpoll() (Poller, error) { return newEpoll() }
