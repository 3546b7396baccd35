package poll

import "time"

type Event uint8

const (
	In Event = 1 << iota
	Out
	Hup
)

type Poller interface {
	Wait(timeout time.Duration, awake func())
	Wake()
	Close() error
}

type readers struct{ wake chan struct{} }

func NewReaders() Poller { return &readers{make(chan struct{}, 1)} }

func (r *readers) Wait(timeout time.Duration, awake func()) {
	defer awake()
	if timeout == 0 {
		return
	}
	<-r.wake
}
func (r *readers) Wake() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}
func (r *readers) Close() error { return nil }
