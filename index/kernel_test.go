package index_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// kernel is a journal with some entries.
type kernel struct {
	dir string
	log *journal.Log
}

func newKernel(tb testing.TB) *kernel {
	tb.Helper()
	k := &kernel{dir: tb.TempDir() + "/journal"}
	k.open(tb)
	tb.Cleanup(func() { testkit.Must(tb, k.log.Close()) })
	return k
}

func (k *kernel) open(tb testing.TB) {
	tb.Helper()
	log, _, err := journal.Open(journal.Options{Dir: k.dir, SegmentBytes: 1 << 20})
	testkit.Must(tb, err)
	k.log = log
}

// grow appends n entries: commands and queries in both dialects, and one in 997 unreadable.
func (k *kernel) grow(tb testing.TB, n int) {
	tb.Helper()
	for range n {
		k.log.Append(entry(k.log.Written() + 1))
		testkit.Must(tb, k.log.Flush())
	}
	_, err := k.log.Sync()
	testkit.Must(tb, err)
}

func entry(seq uint64) *journal.Entry {
	e := &journal.Entry{
		Time: 1735000000000 + int64(seq), PID: int64(seq / 1000), Conn: "c-1",
		Request: fmt.Appendf(nil, `{"kind":"command","type":"Memory.Set","data":{"key":"k","value":1},`+
			`"metadata":{"id":"m-%d","timestamp":1735000000000,"correlation":"c-%d"}}`, seq, seq),
		Outcome: []byte(`{"kind":"reply","data":{}}`),
	}
	switch {
	case seq%997 == 0:
		e.Request = []byte(`{"kind":"command","type":17}`)
	case seq >= 6000 && seq < 6100:
		e.Request = []byte(`{"type":"query","name":"Memory.Get","payload":{}}`)
	}
	return e
}
