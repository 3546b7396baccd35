package journal_test

import (
	"testing"
	"time"
)

// A stopwatch measures the parts of a benchmark that are not its subject.
type stopwatch struct {
	began time.Time
	total time.Duration
}

func (s *stopwatch) start() { s.began = time.Now() }
func (s *stopwatch) stop()  { s.total += time.Since(s.began) }

// report reports the stopwatch's time per operation, and the ratio of the benchmark's own time to it.
func (s *stopwatch) report(b *testing.B) {
	b.ReportMetric(float64(s.total.Nanoseconds())/float64(b.N), "bare-ns/op")
	b.ReportMetric(float64(b.Elapsed())/float64(s.total), "x")
}
