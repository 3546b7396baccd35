package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

const (
	checkpointsPath = dir + "/checkpoints"
	headPath        = dir + "/head"
)

// An image has the files of a journal, which tests tamper with.
type image map[string][]byte

// signedJournal returns a journal of 40 entries in segments of nine, with a checkpoint of every eighth entry, of each
// segment's last and of entry 40.
func signedJournal(t *testing.T) image {
	t.Helper()
	disk := faultfs.NewDisk()
	l, _ := open(t, journal.Options{
		Dir: dir, FS: disk, SegmentBytes: 3150, Signer: newHostKey(1), CheckpointEvery: 8, Now: clock,
	})
	for range 40 {
		grow(t, l, 1)
		testkit.Must(t, l.Checkpoint())
	}
	testkit.Must(t, l.Close())
	if got, want := seqs(checkpoints(t, disk)), "[8 9 17 18 26 27 35 36 40]"; got != want {
		t.Fatalf("got checkpoints %s, want %s", got, want)
	}
	return disk.Image()
}

// lines returns the lines of a file, each with its '\n'.
func (m image) lines(path string) []string { return slices.Collect(strings.Lines(string(m[path]))) }

// find returns the file and line index of entry seq.
func (m image) find(seq int) (path string, index int) {
	for path := range m {
		for i, text := range m.lines(path) {
			if strings.HasSuffix(path, ".ndjson") && strings.HasPrefix(text, fmt.Sprintf(`{"seq":%d,`, seq)) {
				return path, i
			}
		}
	}
	panic(fmt.Sprintf("no entry %d", seq))
}

func (m image) line(seq int) string {
	path, i := m.find(seq)
	return m.lines(path)[i]
}

// splice replaces n lines of a file.
func (m image) splice(path string, i, n int, lines ...string) {
	m[path] = []byte(strings.Join(slices.Replace(m.lines(path), i, i+n, lines...), ""))
}

// replace replaces the line of entry seq.
func (m image) replace(seq int, lines ...string) {
	path, i := m.find(seq)
	m.splice(path, i, 1, lines...)
}

// edit returns a function that changes only the line of entry seq.
func edit(seq int, old, replacement string) func(image) {
	return func(m image) {
		m.replace(seq, strings.Replace(m.line(seq), old, replacement, 1))
	}
}

// cutAfter removes what follows entry seq.
func (m image) cutAfter(seq int) {
	last, i := m.find(seq)
	for path := range m {
		if strings.HasSuffix(path, ".ndjson") && path > last {
			delete(m, path)
		}
	}
	m.splice(last, i+1, len(m.lines(last))-i-1)
}

// rebuild makes the chain valid again from entry seq on, and moves the head mark, like an attacker who may write the files
// and does not have the key.
func (m image) rebuild(seq int) {
	prev := sha256.Sum256([]byte(strings.TrimSuffix(m.line(seq-1), "\n")))
	for ; seq <= 40; seq++ {
		text := m.line(seq)
		at := strings.Index(text, `"prev":"`) + len(`"prev":"`)
		text = text[:at] + hex.EncodeToString(prev[:]) + text[at+64:]
		m.replace(seq, text)
		prev = sha256.Sum256([]byte(strings.TrimSuffix(text, "\n")))
	}
	delete(m, headPath)
}

// goOn lets a kernel without the key append entries to a journal, despite the checkpoints.
func (m image) goOn(t *testing.T, n int) {
	t.Helper()
	old := m[checkpointsPath]
	delete(m, headPath)
	delete(m, checkpointsPath)
	disk := faultfs.FromImage(m)
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, SegmentBytes: 3150})
	for range n {
		e := entry(l.Written()+1, 11)
		l.Append(e)
		testkit.Must(t, l.Flush())
	}
	testkit.Must(t, l.Close())
	clear(m)
	for path, data := range disk.Image() {
		m[path] = data
	}
	m[checkpointsPath] = old
}

// sign replaces the checkpoints with one of the last entry, by a key.
func (m image) sign(t *testing.T, signer journal.Signer) {
	t.Helper()
	delete(m, checkpointsPath)
	disk := faultfs.FromImage(m)
	l, _ := open(t, journal.Options{Dir: dir, FS: disk, Signer: signer})
	testkit.Must(t, l.Close())
	m[checkpointsPath] = bytes.Clone(disk.Image()[checkpointsPath])
}
