package keyed_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/access/keyed"
	"github.com/promptware-os/pwos/schema"
)

// TestRefusalsAreBounded: of a flood of refused logins a few are recorded one by one, and the rest
// are counted: none is lost, and the journal does not grow with them.
func TestRefusalsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var mu sync.Mutex
		var noted []schema.LoginFailedInput
		r := keyed.NewRefusals(slog.New(slog.NewTextHandler(&log, nil)), func(step schema.Request) {
			mu.Lock()
			defer mu.Unlock()
			noted = append(noted, *step.Input.(*schema.LoginFailedInput))
		})
		all := func() []schema.LoginFailedInput {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(noted)
		}
		flood := func(n int, reason string) {
			for i := range n {
				r.Refused(by(reason, i, 0))
			}
		}
		flood(5000, "unknown key")
		flood(3000, "malformed")
		if records := all(); len(records) != 10 || records[9].Count != 0 {
			t.Errorf("at first %d records: %+v", len(records), records)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []schema.LoginFailedInput{
			*by("malformed", 2999, 3000),
			*by("unknown key", 4999, 4990),
		}
		if records := all(); len(records) != 12 || !cmp.Equal(records[10:], want) {
			t.Errorf("then %+v, want %+v", records[10:], want)
		}

		// The next window begins; the end of the daemon ends it.
		flood(12, "late")
		if n := len(all()); n != 22 {
			t.Errorf("%d records", n)
		}
		r.Close()
		records := all()
		if len(records) != 23 || records[22].Count != 2 {
			t.Errorf("at the end %+v", records[22:])
		}
		if lines := strings.Count(log.String(), "\n"); lines != len(records) {
			t.Errorf("the log has %d lines", lines)
		}
	})
}

// by returns a refusal of a process of user 7.
func by(reason string, pid int, count int64) *schema.LoginFailedInput {
	return &schema.LoginFailedInput{Reason: reason, UID: new(int64(7)), OSPID: new(int64(pid)), Count: count}
}
