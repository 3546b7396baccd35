package actors_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// remade counts how often a domain's state is rebuilt.
type remade struct {
	kernel.Domain
	times *atomic.Int64
}

func (r remade) Reset() {
	r.times.Add(1)
	r.Domain.Reset()
}

// TestEndsOnAFullDisk shows that programs whose end cannot be journaled do not cause a rebuild of all states each, and that
// all ends are journaled when there is room, also without another call.
func TestEndsOnAFullDisk(t *testing.T) {
	t.Parallel()
	const programs, patience = 20, 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		fail := make(chan struct{})
		var times atomic.Int64
		domains := realDomains(t)
		domains[schema.Ipc] = remade{domains[schema.Ipc], &times}
		s := startReserving(t, domains, actors.Hosting{Dir: t.TempDir(), Host: func() (*host.Host, error) {
			<-fail
			return nil, errNoHost
		}})
		operator := s.connect()
		for i := range programs {
			s.connect().send(strings.Replace(hosted("a", ""), `"x"`, fmt.Sprintf(`"x%d"`, i), 1)) // each waits for its answer
		}
		synctest.Wait()
		s.fill(operator)
		close(fail)
		before := times.Load()
		time.Sleep(patience)
		if n := times.Load() - before; n == 0 || n > 100 {
			t.Errorf("in %v the states were rebuilt %d times", patience, n)
		}
		s.disk.Free()
		time.Sleep(time.Minute)
		ends := 0
		for _, e := range s.entries() {
			if e.Type == "Process.NoteEnd" {
				ends++
			}
		}
		if ends != programs {
			t.Errorf("%d ends in the journal, want %d", ends, programs)
		}
	})
}
