package index_test

import (
	"crypto/ed25519"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/index"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// signer signs with a fixed key.
type signer struct{ key ed25519.PrivateKey }

func newSigner() signer { return signer{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))} }

func (s signer) Public() string {
	public, err := ssh.NewPublicKey(s.key.Public())
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(public)))
}

func (s signer) Sign(data []byte) ([]byte, error) { return ed25519.Sign(s.key, data), nil }

// archive archives the first segments of a journal.
func (k *kernel) archive(t *testing.T) *journal.Anchor {
	t.Helper()
	a, err := journal.PlanArchive(nil, k.dir, k.log.Synced(), 0)
	testkit.Must(t, err)
	to := t.TempDir() + "/archive"
	testkit.Must(t, a.Copy(ctx(), to))
	anchor := &journal.Anchor{Head: a.Head, Form: "test", Archive: to}
	testkit.Must(t, journal.WriteAnchor(nil, k.dir, anchor, newSigner(), func(put func(string, []byte) error) error { return put("memory", []byte("{}")) }))
	testkit.Must(t, a.Remove())
	return anchor
}

// TestSearchOfArchive: indexed entries are found after they were archived. A rebuilt index has them too if the archive
// is available, else only the later ones.
func TestSearchOfArchive(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	var told troubles
	o := index.Options{Dir: k.dir, Synced: k.log.Synced, Trouble: told.add}
	s := open(t, newPath(t), o)
	first := k.say(t, 7, "Memory.Set", `{"key":"a","value":"needle"}`, fine)
	k.grow(t, 2*run)
	follow(t, s, k, o)
	anchor := k.archive(t)
	second := k.say(t, 7, "Memory.Set", `{"key":"b","value":"needle"}`, fine)
	k.grow(t, 2*index.BlockEntries)
	if anchor.Seq < first || anchor.Seq >= second {
		t.Fatalf("entries up to %d are archived, want %d and not %d", anchor.Seq, first, second)
	}
	found := func(s *index.Index, want ...uint64) {
		t.Helper()
		got, err := s.Search(ctx(), ask(t, "needle"))
		testkit.Must(t, err)
		if !slices.Equal(seqs(got), want) {
			t.Errorf("found %v, want %v", seqs(got), want)
		}
	}
	found(s, second, first)
	follow(t, s, k, o)
	found(s, second, first)
	told.want(t, nil)

	rebuilt := open(t, newPath(t), o)
	found(rebuilt, second, first)
	follow(t, rebuilt, k, o)
	found(rebuilt, second, first)
	told.want(t, nil)
	testkit.Must(t, os.Rename(anchor.Archive, anchor.Archive+".away"))
	found(rebuilt, second, first)
	rebuilt = open(t, newPath(t), index.Options{Dir: k.dir, Synced: k.log.Synced})
	found(rebuilt, second)
	follow(t, rebuilt, k, o)
	found(rebuilt, second)
	mark, err := rebuilt.Searchable(ctx())
	testkit.Must(t, err)
	if mark.Seq < second {
		t.Errorf("documents end at %d, want %d at least", mark.Seq, second)
	}
}

// TestSearchOfArchives: a rebuilt index has the entries of all archives that are available.
func TestSearchOfArchives(t *testing.T) {
	t.Parallel()
	k := newKernel(t)
	o := index.Options{Dir: k.dir, Synced: k.log.Synced}
	var said []uint64
	var anchors []*journal.Anchor
	for n := range 3 {
		said = append(said, k.say(t, 7, "Memory.Set", `{"key":"a","value":"needle"}`, fine))
		k.grow(t, 2*run)
		if n < 2 {
			_, err := k.log.Rotate()
			testkit.Must(t, err)
			anchors = append(anchors, k.archive(t))
		}
	}
	rebuilt := func(want ...uint64) {
		t.Helper()
		s := open(t, newPath(t), o)
		follow(t, s, k, o)
		got, err := s.Search(ctx(), ask(t, "needle"))
		testkit.Must(t, err)
		if !slices.Equal(seqs(got), want) {
			t.Errorf("found %v, want %v", seqs(got), want)
		}
	}
	if anchors[0].Seq >= said[1] || anchors[1].Seq < said[1] || anchors[1].Seq >= said[2] {
		t.Fatalf("archived up to %d and %d, want one of the entries %d in each", anchors[0].Seq, anchors[1].Seq, said)
	}
	rebuilt(said[2], said[1], said[0])
	testkit.Must(t, os.Rename(anchors[0].Archive, anchors[0].Archive+".away"))
	rebuilt(said[2], said[1])
	testkit.Must(t, os.Rename(anchors[1].Archive, anchors[1].Archive+".away"))
	rebuilt(said[2])
	testkit.Must(t, os.Rename(anchors[0].Archive+".away", anchors[0].Archive)) // which only the second one names
	rebuilt(said[2])
}
