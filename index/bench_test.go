package index_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// BenchmarkSnapshot saves and loads a million keys of 100 bytes, in chunks of one key and in chunks of 64 KiB.
func BenchmarkSnapshot(b *testing.B) {
	const keys, size = 1_000_000, 100
	for _, chunk := range []int{size, 64 << 10} {
		data := make([]byte, chunk)
		for i := range data {
			data[i] = byte(i * 7)
		}
		write := func(put func([]byte) error) error {
			for n := 0; n < keys*size; n += chunk {
				if err := put(data); err != nil {
					return err
				}
			}
			return nil
		}
		path := newPath(b)
		s := open(b, path, index.Options{})
		b.Run(fmt.Sprintf("Save/chunk=%d", chunk), func(b *testing.B) {
			b.SetBytes(keys * size)
			b.ReportAllocs()
			for b.Loop() {
				testkit.Must(b, s.Save(ctx(), "memory", head(1), 1, write))
			}
		})
		b.Run(fmt.Sprintf("Load/chunk=%d", chunk), func(b *testing.B) {
			b.SetBytes(keys * size)
			b.ReportAllocs()
			for b.Loop() {
				of(b, s, "memory")
			}
		})
		testkit.Must(b, s.Close())
		info, err := os.Stat(filepath.Join(path, "memory.snapshot"))
		testkit.Must(b, err)
		b.Logf("chunk=%d: file of %d bytes for %d of the state", chunk, info.Size(), keys*size)
	}
}

// BenchmarkIndex measures the time and disk space of the index, and the time to read the journal alone.
func BenchmarkIndex(b *testing.B) {
	const entries = 50 * run
	k := newKernel(b)
	k.grow(b, entries)
	each := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/entries, "ns/entry")
	}
	b.Run("read only", func(b *testing.B) {
		for b.Loop() {
			r := journal.NewReader(nil, k.dir, journal.ReaderOptions{})
			for {
				if _, err := r.Next(ctx()); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					b.Fatal(err)
				}
			}
			testkit.Must(b, r.Close())
		}
		each(b)
	})
	var size int64
	b.Run("read and index", func(b *testing.B) {
		for b.Loop() {
			path := newPath(b)
			s := open(b, path, index.Options{})
			followAll(b, s, k)
			testkit.Must(b, s.Close())
			info, err := os.Stat(filepath.Join(path, "index.db"))
			testkit.Must(b, err)
			size = info.Size()
		}
		each(b)
		b.ReportMetric(float64(size)/entries*1e6/1e6, "MB/Mentries")
	})

	s := open(b, newPath(b), index.Options{})
	followAll(b, s, k)
	pid := int64(77)
	for name, f := range map[string]index.Filter{
		"correlation": {Correlation: "c-123456"},
		"pid":         {PID: &pid},
		"all":         {},
	} {
		b.Run("Ranges/"+name, func(b *testing.B) {
			for b.Loop() {
				_, err := s.Ranges(ctx(), f, 1, 1000)
				testkit.Must(b, err)
			}
			each(b)
		})
	}
}

func followAll(b *testing.B, s *index.Index, k *kernel) {
	b.Helper()
	follow(b, s, k, index.Options{})
	wantMark(b, s, k.log.Synced())
}

// BenchmarkOpen measures the opening of an empty index.
func BenchmarkOpen(b *testing.B) {
	path := newPath(b)
	for b.Loop() {
		s, err := index.Open(path, index.Options{})
		testkit.Must(b, err)
		testkit.Must(b, s.Close())
	}
}
