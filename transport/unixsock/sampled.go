package unixsock

import (
	"log/slog"
	"sync"
	"time"
)

// sampledPerSecond is how many lines a second a sampled log takes.
const sampledPerSecond = 10

// sampled logs what strangers can bring about as often as they like: the first lines of each second, and then how many
// there were more.
type sampled struct {
	mu      sync.Mutex
	since   time.Time
	said    int
	skipped int
}

func (s *sampled) warn(log *slog.Logger, text string, attrs ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.since) >= time.Second {
		if s.skipped > 0 {
			log.Warn("more of the same was not logged", "lines", s.skipped)
		}
		s.since, s.said, s.skipped = now, 0, 0
	}
	if s.said == sampledPerSecond {
		s.skipped++
		return
	}
	s.said++
	log.Warn(text, attrs...)
}
