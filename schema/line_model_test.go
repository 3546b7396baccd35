package schema_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
)

// TestLineReaderIsSplit compares LineReader with the model on short lines of special bytes, for all sizes of reads.
func TestLineReaderIsSplit(t *testing.T) {
	t.Parallel()
	pieces := rapid.SampledFrom([]string{"\n", "\n", "\r\n", " ", "\t", "\r", "a", "bc", "def ghi", "é", "\x00", "{\"x\":1}"})
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			var text []byte
			for _, piece := range rapid.SliceOfN(pieces, 0, 60).Draw(t, "text") {
				text = append(text, piece...)
			}
			limit := rapid.IntRange(0, 20).Draw(t, "limit")
			checkAgainstSplit(t, text, limit, rapid.SliceOfN(rapid.IntRange(0, 30), 0, 6).Draw(t, "sizes"))
		}
	})
}

// TestLineReaderIsSplitWhereBuffersGrow compares LineReader with the model on lines, and with limits, of about the size of a buffer.
func TestLineReaderIsSplitWhereBuffersGrow(t *testing.T) {
	t.Parallel()
	const chunk = 2 * schema.MaxLine
	around := func(t *rapid.T, label string, n int) int {
		return max(0, n+rapid.IntRange(-3, 3).Draw(t, label))
	}
	rapid.Check(t, func(t *rapid.T) {
		limit := around(t, "limit", rapid.SampledFrom([]int{100, schema.MaxLine, chunk, 3 * chunk / 2, 2 * chunk}).Draw(t, "about"))
		var text []byte
		for i := range rapid.IntRange(0, 6).Draw(t, "lines") {
			length := around(t, "length", rapid.SampledFrom([]int{0, 10, limit / 2, limit, limit + 1, chunk, chunk - limit, chunk + limit, 2 * chunk}).Draw(t, "about"))
			text = append(text, bytes.Repeat([]byte{byte('a' + i)}, length)...)
			text = append(text, '\n')
		}
		if rapid.Bool().Draw(t, "no final newline") {
			text = bytes.TrimSuffix(text, []byte{'\n'})
		}
		checkAgainstSplit(t, text, limit, rapid.SliceOfN(rapid.SampledFrom([]int{0, 997, 4096, chunk - 1, chunk, 1 << 20}), 0, 4).Draw(t, "sizes"))
	})
}

func checkAgainstSplit(t *rapid.T, text []byte, limit int, sizes []int) {
	t.Helper()
	if !slices.ContainsFunc(sizes, func(n int) bool { return n > 0 }) {
		sizes = nil // the source would never return data
	}
	end := rapid.SampledFrom([]error{io.EOF, errors.New("connection reset")}).Draw(t, "end")
	early, try := rapid.Bool().Draw(t, "early"), rapid.Bool().Draw(t, "try")
	for _, open := range sources(text, sizes, end, early) {
		src, counter := open()
		checkLines(t, src, counter, limit, split(text, limit, end), try)
	}
}

// FuzzLineReader compares LineReader with the model for any bytes, limit and sizes of reads. An X in the input means
// 4,096 bytes, so that short inputs can fill a buffer.
func FuzzLineReader(f *testing.F) {
	f.Add([]byte("{\"kind\":\"query\"}\n{}\r\n\n  \nlast"), uint16(16), []byte{1, 0, 7})
	f.Add([]byte("12345678\n123456789\n"), uint16(8), []byte{})
	f.Add([]byte("123456789"), uint16(8), []byte{9})
	f.Add([]byte("XXXXXXXXXX"), uint16(32768), []byte{255, 255})
	f.Add([]byte("aXXXXXXXX\nXXXXXXX\n"), uint16(33000), []byte{182, 0, 1})
	f.Add([]byte(" \n\t\n"), uint16(0), []byte{2})
	f.Fuzz(func(t *testing.T, short []byte, limit uint16, seeds []byte) {
		text := bytes.ReplaceAll(short, []byte("X"), bytes.Repeat([]byte("x"), 4096))
		if len(text) > 1<<20 || len(seeds) > 64 {
			return // slow, and without a new case
		}
		var sizes []int
		for _, b := range seeds {
			sizes = append(sizes, int(b)*int(b)) // to 65,025: over a buffer
		}
		if !slices.ContainsFunc(sizes, func(n int) bool { return n > 0 }) {
			sizes = nil
		}
		for kind, open := range sources(text, sizes, io.EOF, len(seeds)%2 == 1) {
			for _, try := range []bool{false, true} {
				src, counter := open()
				checkLines(named{t, kind}, src, counter, int(limit), split(text, int(limit), io.EOF), try)
			}
		}
	})
}
