package journal_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// benchEntry returns the entry of a small Memory.Set.
func benchEntry() *journal.Entry {
	return &journal.Entry{
		Time: 1735000000000, Tick: 3, PID: 7, Origin: "https://my-os.local/", Conn: "c-5",
		Request: []byte(`{"kind":"command","type":"Memory.Set","data":{"key":"notes/1","value":"some text of a few words"},` +
			`"metadata":{"id":"0193f0a0-5d2e-7c1a-9a51-0123456789ab","timestamp":1735000000000}}`),
		Outcome: []byte(`{"kind":"reply","data":{"success":true}}`), LatencyUS: 14,
	}
}

func benchLog(b *testing.B, o journal.Options) *journal.Log {
	b.Helper()
	o.Dir = filepath.Join(b.TempDir(), "journal")
	o.ReserveBytes = journal.DefaultReserveBytes
	l, _ := open(b, o)
	b.Cleanup(func() { testkit.Must(b, l.Close()) })
	return l
}

func BenchmarkAppend(b *testing.B) {
	l := benchLog(b, journal.Options{})
	e := benchEntry()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		l.Append(e)
		if n%1024 == 1023 {
			b.StopTimer()
			testkit.Must(b, l.Flush())
			b.StartTimer()
		}
	}
}

func BenchmarkAppendFlush(b *testing.B) {
	for _, batch := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			l := benchLog(b, journal.Options{})
			e := benchEntry()
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				l.Append(e)
				if n%batch == batch-1 {
					testkit.Must(b, l.Flush())
				}
			}
		})
	}
}

// BenchmarkDurable makes a batch durable, alternating with a bare loop that writes and fsyncs as many bytes. The metric
// bare-ns/op is the bare loop, x the ratio of both.
func BenchmarkDurable(b *testing.B) {
	for _, batch := range []int{1, 16, 64} {
		for name, signer := range map[string]journal.Signer{"": nil, "/signed": newHostKey(1)} {
			b.Run(fmt.Sprintf("batch=%d%s", batch, name), func(b *testing.B) {
				l := benchLog(b, journal.Options{Signer: signer})
				f, err := os.Create(filepath.Join(b.TempDir(), "bare"))
				testkit.Must(b, err)
				b.Cleanup(func() { testkit.Must(b, f.Close()) })
				e := benchEntry()
				data := make([]byte, batch*450)
				bare := stopwatch{}
				for b.Loop() {
					for range batch {
						l.Append(e)
					}
					testkit.Must(b, l.Flush())
					_, err := l.Sync()
					testkit.Must(b, err)
					testkit.Must(b, l.Checkpoint())
					b.StopTimer()
					bare.start()
					_, err = f.Write(data)
					testkit.Must(b, err)
					testkit.Must(b, f.Sync())
					bare.stop()
					b.StartTimer()
				}
				bare.report(b)
			})
		}
	}
}

// BenchmarkRead measures the cost of an entry in a replay, including the chain.
func BenchmarkRead(b *testing.B) {
	const entries = 50_000
	dir := filepath.Join(b.TempDir(), "journal")
	l, _ := open(b, journal.Options{Dir: dir, SegmentBytes: 8 << 20})
	e := benchEntry()
	for n := range entries {
		l.Append(e)
		if n%100 == 99 {
			testkit.Must(b, l.Flush())
		}
	}
	testkit.Must(b, l.Close())
	b.Run("reader", func(b *testing.B) {
		b.ReportAllocs()
		for n := 0; n < b.N; {
			r := journal.NewReader(nil, dir, journal.ReaderOptions{})
			for ; n < b.N; n++ {
				rec, err := r.Next(context.Background())
				if errors.Is(err, io.EOF) {
					break
				}
				testkit.Must(b, err)
				b.SetBytes(int64(len(rec.Line)))
			}
			testkit.Must(b, r.Close())
		}
	})
	b.Run("verify", func(b *testing.B) {
		for b.Loop() {
			_, err := journal.Verify(context.Background(), nil, dir, journal.VerifyOptions{})
			testkit.Must(b, err)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
	})
	b.Run("seek", func(b *testing.B) {
		for n := uint64(0); b.Loop(); n += 7919 {
			r := journal.NewReader(nil, dir, journal.ReaderOptions{From: n%entries + 1})
			_, err := r.Next(context.Background())
			testkit.Must(b, errors.Join(err, r.Close()))
		}
	})
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			l, _ := open(b, journal.Options{Dir: dir, SegmentBytes: 8 << 20})
			testkit.Must(b, l.Close())
		}
	})
}
