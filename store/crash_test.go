package store_test

import (
	"errors"
	"os"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/store"
)

// However much of the log of a Save reached the disk, a start finds the old snapshot or the new one, whole. The main file
// is the one from before the commit: until the log is folded in, which takes a synced log, nothing else can be there.
func TestCrashOfSave(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	old, fresh := state("old", 12, 100_000), state("new", 90, 100_000)
	s := open(t, path, store.Options{})
	testkit.Must(t, s.Save(ctx(), "memory", head(1), 1, puts(old...)))
	testkit.Must(t, s.Close())
	main := read(t, path)

	s = open(t, path, store.Options{})
	var during []byte
	testkit.Must(t, s.Save(ctx(), "memory", head(2), 2, func(put func([]byte) error) error {
		if err := puts(fresh...)(put); err != nil {
			return err
		}
		during = read(t, path+"-wal")
		if len(during) < 1<<20 {
			return errors.New("nothing of it is in the log yet: the test tests nothing")
		}
		return nil
	}))
	log := read(t, path+"-wal")
	if len(log) < len(during) {
		t.Fatal("the log was cut: the test tests nothing")
	}

	outcomes := map[bool]int{}
	try := func(log []byte) {
		t.Helper()
		copied := newPath(t)
		write(t, copied, main)
		write(t, copied+"-wal", log)
		var told troubles
		s := open(t, copied, store.Options{Trouble: told.tell})
		told.want(t, nil)
		got, err := load(s, "memory")
		testkit.Must(t, err)
		infos, err := s.Snapshots(ctx())
		testkit.Must(t, err)
		isNew := len(infos) == 1 && infos[0].At == head(2)
		if len(infos) != 1 || isNew && !equal(got, fresh) || !isNew && (infos[0].At != head(1) || !equal(got, old)) {
			t.Fatalf("a start after %d bytes of the log has %d chunks, %v", len(log), len(got), infos)
		}
		outcomes[isNew]++
		wantUsable(t, s)
		testkit.Must(t, s.Close())
	}
	try(during)
	for i := range 24 {
		try(log[:len(log)*i/24])
	}
	for n := range 12 { // the very end, where the commit stands
		try(log[:len(log)-n*3000])
	}
	torn := append([]byte(nil), log...)
	clear(torn[len(torn)/2 : len(torn)/2+4096]) // a page of it that never reached the disk
	try(torn)
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Fatalf("outcomes %v: the test tests one side only", outcomes)
	}
}

func read(tb testing.TB, path string) []byte {
	tb.Helper()
	data, err := os.ReadFile(path)
	testkit.Must(tb, err)
	return data
}
