package actors_test

import (
	"strings"
	"testing"
	"testing/synctest"
)

// MESSAGE 4.6.1 #1, MESSAGE 4.6.2 #1, and the same for EVENT: a frame with an invalid envelope reaches no domain, even if
// its data fits the syscall.
func TestInvalidFramesReachNoDomain(t *testing.T) {
	t.Parallel()
	frames := []string{
		`{"kind":"command","type":"Syscall.Echo","data":{"message":"x"}}`,
		`{"kind":"command","type":"Syscall.Echo","data":{"message":"x"},"metadata":{"id":"","timestamp":1}}`,
		`{"kind":"command","type":"Syscall.Echo","data":{"message":"x"},"metadata":{"id":"a","timestamp":-1}}`,
		`{"kind":"query","type":"Syscall.Ping","data":{"payload":1},"metadata":{"id":"a"}}`,
		`{"type":"command","name":"Syscall.Echo","payload":{"message":"x"},"metadata":{"timestamp":1}}`,
		`{"type":"query","name":"Syscall.Ping","payload":{"payload":1},"metadata":{"id":"a","timestamp":1,"correlation":""}}`,
	}
	synctest.Test(t, func(t *testing.T) {
		domain := newFake()
		s := start(t, domain)
		c := s.connect()
		c.send(frames...)
		synctest.Wait()
		out := string(c.link.out.drain())
		if n := strings.Count(out, "Schema validation failed: "); n != len(frames) {
			t.Errorf("%d frames were refused, want %d:\n%s", n, len(frames), out)
		}
		if asked := domain.history(); len(asked) != 0 {
			t.Errorf("the domain was asked about %v", asked)
		}
	})
}
