package state_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/promptware-os/pwos/daemon/state"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel/rewind"
	"github.com/promptware-os/pwos/schema"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// long is the length of a journal that is read in several steps.
const long = 150_000

// recorded returns the state of a journal that sets one key to the number of each entry.
func recorded(t *testing.T, entries int) *state.State {
	t.Helper()
	cfg := testkernel.Settings(testkit.NewPlace(t, ""))
	testkit.Must(t, os.MkdirAll(cfg.StateDir, 0o700))
	log, _, err := journal.Open(journal.Options{Dir: filepath.Join(cfg.StateDir, "journal")})
	testkit.Must(t, err)
	for seq := 1; seq <= entries; seq++ {
		log.Append(&journal.Entry{
			Time: int64(seq), Origin: "https://pwos.local/", Conn: "c-1", Outcome: []byte(`{"kind":"reply","data":{"success":true}}`),
			Request: fmt.Appendf(nil, `{"kind":"command","type":"Memory.Set","data":{"key":"n","value":%d},"metadata":{"id":"m-%d","timestamp":1}}`, seq, seq),
		})
		if seq%4096 == 0 {
			testkit.Must(t, log.Flush())
		}
	}
	testkit.Must(t, log.Close())
	s, err := state.Open(t.Context(), &cfg, "test", nil, host.Means{}, slog.New(slog.DiscardHandler))
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, s.Close()) })
	return s
}

// TestReplayTellsProgress: a replay of a long journal reports its progress, a short one does not. A cancelled replay ends
// immediately, reports nothing more, and releases its turn.
func TestReplayTellsProgress(t *testing.T) {
	t.Parallel()
	s := recorded(t, long)
	past := s.Past(func(context.Context) (uint64, error) { return long, nil })
	key := "n"
	ask := func(ctx context.Context, until int64, told func(read int64)) (schema.Value, []int64, error) {
		var reports []int64
		out, err := past.Replay(ctx, &rewind.Question{Until: until, Origin: "https://pwos.local/", Key: &key, Told: func(read, of int64) {
			if of != until {
				t.Errorf("the reports have %d entries, want %d", of, until)
			}
			reports = append(reports, read)
			told(read)
		}})
		if err != nil {
			return nil, reports, err
		}
		return out.Value, reports, nil
	}
	for until, want := range map[int64][]int64{long - 1: {1 << 16, 1 << 17}, 1000: nil} {
		value, reports, err := ask(t.Context(), until, func(int64) {})
		if err != nil || string(value) != fmt.Sprint(until) || !slices.Equal(reports, want) {
			t.Errorf("until %d: the key is %s (%v), reports %v, want %v", until, value, err, reports, want)
		}
	}
	for range 3 { // more than may run at the same time
		ctx, giveUp := context.WithCancel(t.Context())
		if _, reports, err := ask(ctx, long-1, func(int64) { giveUp() }); !errors.Is(err, context.Canceled) || len(reports) != 1 {
			t.Errorf("cancelled: %v, reports %v, want one", err, reports)
		}
	}
	if value, _, err := ask(t.Context(), 7, func(int64) {}); err != nil || string(value) != "7" {
		t.Errorf("then: %s, %v", value, err)
	}
}
