package journal_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/faultfs"
)

// naming returns an entry that names a host key.
func naming(key *hostKey) *journal.Entry {
	return &journal.Entry{Request: []byte(`"` + key.Public() + `"`), Outcome: []byte("null")}
}

// named reads the entry of naming.
func named(r *journal.Record) string {
	if text := strings.Trim(string(r.Request), `"`); strings.HasPrefix(text, "ssh-") {
		return text
	}
	return ""
}

// A journal whose host key changes is verified with only the last key if an entry names that key. It is not verified with
// only the first key, or if no entry names the last key, or if the first key also signs after it.
func TestVerifyFollowsTheHostKey(t *testing.T) {
	t.Parallel()
	first, second := newHostKey(1), newHostKey(2)
	write := func(t *testing.T, disk *faultfs.Disk, key journal.Signer, entries ...*journal.Entry) {
		l, _ := open(t, journal.Options{Dir: dir, FS: disk, Signer: key})
		for _, e := range entries {
			l.Append(e)
		}
		testkit.Must(t, l.Flush())
		testkit.Must(t, l.Close())
	}
	for _, test := range []struct {
		name  string
		write func(t *testing.T, disk *faultfs.Disk)
		keys  []*hostKey
		names func(*journal.Record) string
		bad   int // checkpoints that are not accepted
	}{
		{"last key", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, first, naming(first), entry(2, 1))
			write(t, disk, nil, naming(second))
			write(t, disk, second, entry(4, 1))
		}, []*hostKey{second}, named, 0},
		{"before the first naming", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, first, entry(1, 1))
			write(t, disk, first, naming(first))
			write(t, disk, nil, naming(second))
			write(t, disk, second, entry(4, 1))
		}, []*hostKey{second}, named, 0},
		{"first key", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, first, naming(first), entry(2, 1))
			write(t, disk, nil, naming(second))
			write(t, disk, second, entry(4, 1))
		}, []*hostKey{first}, named, 1},
		{"nothing is named", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, first, entry(1, 1))
			write(t, disk, second, entry(2, 1))
		}, []*hostKey{second}, named, 1},
		{"names are not asked for", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, first, naming(first))
			write(t, disk, second, naming(second))
		}, []*hostKey{second}, nil, 1},
		{"old key goes on", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, first, naming(first))
			write(t, disk, nil, naming(second))
			write(t, disk, first, entry(3, 1))
			write(t, disk, second, entry(4, 1))
		}, []*hostKey{second}, named, 2},
		{"the naming is not vouched for", func(t *testing.T, disk *faultfs.Disk) {
			write(t, disk, second, entry(1, 1))
			write(t, disk, first, naming(first), entry(3, 1))
		}, []*hostKey{second}, named, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			disk := faultfs.NewDisk()
			test.write(t, disk)
			var keys []string
			for _, k := range test.keys {
				keys = append(keys, k.Public())
			}
			report := verify(t, disk, dir, journal.VerifyOptions{Keys: keys, Names: test.names})
			if len(report.Findings) != test.bad {
				t.Errorf("findings: %v, want %d", report.Findings, test.bad)
			}
		})
	}
}
