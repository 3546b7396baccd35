package kernel_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestRestart runs random commands, and makes all queries before and after restarts: the answers are the same. So are the
// mailboxes, which can be read only once, compared with those of a kernel that did the same without a restart.
func TestRestart(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testkit.Rounds(2, 4, 4)) {
		t.Run(fmt.Sprint("seed", seed), func(t *testing.T) {
			t.Parallel()
			live := life(t, seed, nil)
			for name, change := range betweenLives() {
				if diff := cmp.Diff(live, life(t, seed, change)); diff != "" {
					t.Errorf("%s: live and restarted (-live +restarted):\n%s", name, diff)
				}
			}
			if len(live) == 0 || !strings.Contains(strings.Join(live, "\n"), `"payload":`) {
				t.Error("no message was left to compare")
			}
		})
	}
}

// betweenLives returns what may happen to the projections while no kernel runs, which must have no visible effect.
func betweenLives() map[string]func(t *testing.T, dir string, life int) {
	return map[string]func(t *testing.T, dir string, life int){
		"snapshots": func(*testing.T, string, int) {},
		"no snapshots": func(t *testing.T, dir string, _ int) {
			testkit.Must(t, os.RemoveAll(dir))
		},
		"old snapshots": func(t *testing.T, dir string, life int) {
			from, to := dir, dir+".old"
			if life > 0 {
				from, to = to, from
			}
			testkit.Must(t, os.RemoveAll(to))
			testkit.Must(t, os.CopyFS(to, os.DirFS(from)))
		},
		"damaged snapshots": func(t *testing.T, dir string, life int) {
			files, err := filepath.Glob(filepath.Join(dir, "*"))
			testkit.Must(t, err)
			if len(files) == 0 {
				t.Error("nothing was damaged")
			}
			for _, file := range files {
				data, err := os.ReadFile(file)
				testkit.Must(t, err)
				for at := life; at < len(data); at += 1777 {
					data[at] ^= 0x10
				}
				testkit.Must(t, os.WriteFile(file, data, 0o600))
			}
		},
	}
}

// life returns the answers of a kernel at the end, mailboxes last. It is restarted if change, which changes its projections
// meanwhile, is not nil.
func life(t *testing.T, seed uint64, change func(t *testing.T, dir string, life int)) []string {
	t.Helper()
	d := start(t, func(c *config.Config) { c.Journal.SnapshotEvery = 10 })
	c := d.dial(t)
	pids := []int64{c.spawn(0, `{"allowed_syscalls":["*"],"resource_quotas":{"gpu":3}}`)}
	chance := rand.New(rand.NewPCG(seed, 5))
	for n := range 3 {
		for range 60 {
			pids = c.scramble(chance, pids)
		}
		if change == nil {
			continue
		}
		before := c.everything(pids)
		d.restartAfter(t, func() { change(t, filepath.Join(d.cfg.StateDir, "projections"), n) })
		c = d.dial(t)
		if diff := cmp.Diff(before, c.everything(pids)); diff != "" {
			t.Errorf("before and after a restart (-before +after):\n%s", diff)
		}
	}
	all := c.everything(pids)
	for _, pid := range pids {
		a := c.ask("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":100}`, pid))
		all = append(all, fmt.Sprintf("mail of %d: %s", pid, sending.ReplaceAll(a.Data, nil)))
	}
	return all
}

// sending matches the id of a call, which differs in a run with restarts.
var sending = regexp.MustCompile(`,"causation":"[^"]*"`)

// scramble makes one random call, which may fail.
func (c *client) scramble(chance *rand.Rand, pids []int64) []int64 {
	pid, other, n := pids[chance.IntN(len(pids))], pids[chance.IntN(len(pids))], chance.IntN(5)
	switch chance.IntN(12) {
	case 0:
		c.ask("Memory.Set", fmt.Sprintf(`{"pid":%d,"key":"k/%d","value":%d}`, pid, n, chance.Int()))
	case 1:
		c.ask("Memory.Delete", fmt.Sprintf(`{"key":"k/%d"}`, n))
	case 2, 3:
		if a := c.ask("Syscall.Spawn", fmt.Sprintf(`{"pid":%d,"child_agent_id":"a-%d"}`, pid, n)); a.Kind == "reply" {
			pids = append(pids, int64(len(pids)+1))
		}
	case 4:
		if n == 0 {
			c.ask("Syscall.Terminate", fmt.Sprintf(`{"target_pid":%d}`, other))
		}
	case 5, 6:
		c.ask("Syscall.Alloc", fmt.Sprintf(`{"pid":%d,"resource_id":"gpu","amount":0.%d}`, pid, n))
	case 7:
		c.ask("Syscall.SendMsg", fmt.Sprintf(`{"pid":%d,"receiver_pid":%d,"payload":%d,"expires_at_tick":%d}`, pid, other, n, 20*n))
	case 8:
		c.ask("Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":2}`, pid))
	case 9:
		c.ask("Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"k%d":%d},"resource_changes":{"joy":0.1}}`, pid, n, n))
	case 10:
		c.ask("Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":["*"],"resource_quotas":{"gpu":%d}}`, pid, n))
	default:
		c.ask("Clock.Advance", fmt.Sprintf(`{"ticks":%d}`, n))
	}
	return pids
}

// everything returns the kernel's answers to queries about all its state except for the mailboxes.
func (c *client) everything(pids []int64) (all []string) {
	c.t.Helper()
	note := func(typ, data string) {
		all = append(all, fmt.Sprintf("%s %s: %s", typ, data, c.ask(typ, data).Data))
	}
	note("Clock.Get", `{}`)
	note("Memory.List", `{}`)
	for n := range 5 {
		note("Memory.Get", fmt.Sprintf(`{"key":"k/%d"}`, n))
	}
	note("Process.List", `{}`)
	note("Syscall.Query", `{"resource_id":"gpu"}`)
	note("Memory.Get", `{"key":"proc/meminfo"}`)
	for _, pid := range pids {
		note("Process.Get", fmt.Sprintf(`{"pid":%d}`, pid))
		note("Capability.Get", fmt.Sprintf(`{"pid":%d}`, pid))
		note("Syscall.GetState", fmt.Sprintf(`{"target_pid":%d}`, pid))
	}
	return all
}
