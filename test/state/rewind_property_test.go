package state_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/capability"
	"github.com/promptware-os/pwos/kernel/delta"
	"github.com/promptware-os/pwos/kernel/ipc"
	"github.com/promptware-os/pwos/kernel/memory"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/kernel/resource"
	"github.com/promptware-os/pwos/record"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// perKernel is how many histories one kernel has, since a longer journal takes longer to replay.
const perKernel = 50

// command is a command in a random history.
type command struct{ typ, data string }

var (
	keys   = rapid.SampledFrom([]string{"a", "b/c", "vault/k"})
	values = rapid.SampledFrom([]string{`1`, `null`, `{"a": 1.50,"b":[ ]}`, `"\u0041 text"`, `"x"`, `[1,2]`})
	pids   = rapid.Int64Range(1, agents)
	allows = rapid.SampledFrom([]string{`[]`, `["Memory.Get"]`, `["Memory.*","Syscall.Ping"]`, `["*"]`})
)

// drawn returns a random command; many fail.
func drawn(t *rapid.T) command {
	key, pid := keys.Draw(t, "key"), pids.Draw(t, "pid")
	value := values.Draw(t, "value")
	if strings.HasPrefix(key, "vault/") {
		value = fmt.Sprintf(`"pwenc:v1:%d"`, rapid.IntRange(1, 3).Draw(t, "sealed"))
	}
	switch rapid.IntRange(0, 13).Draw(t, "what") {
	case 0, 1:
		return command{"Memory.Set", fmt.Sprintf(`{"key":%q,"value":%s}`, key, value)}
	case 2:
		return command{"Memory.CompareAndSet", fmt.Sprintf(`{"key":%q,"value":%s}`, key, value)}
	case 3:
		return command{"Memory.Delete", fmt.Sprintf(`{"key":%q}`, key)}
	case 4:
		return command{"Memory.Set", fmt.Sprintf(`{"pid":%d,"key":%q,"value":%s}`, pid, key, value)}
	case 5, 6:
		mode := rapid.SampledFrom([]string{"replace", "add"}).Draw(t, "mode")
		return command{"Capability.Grant", fmt.Sprintf(`{"pid":%d,"allowed_syscalls":%s,"mode":%q}`, pid, allows.Draw(t, "allow"), mode)}
	case 7:
		return command{"Capability.GrantDefault", fmt.Sprintf(`{"pid":%d}`, pid)}
	case 8:
		return command{"Capability.Revoke", fmt.Sprintf(`{"pid":%d}`, pid)}
	case 9, 10:
		priority := rapid.SampledFrom([]string{"NORMAL", "URGENT"}).Draw(t, "priority")
		return command{"Syscall.SendMsg", fmt.Sprintf(`{"receiver_pid":%d,"payload":%s,"priority":%q}`, rapid.Int64Range(0, agents).Draw(t, "to"), value, priority)}
	case 11:
		return command{"Ipc.Broadcast", fmt.Sprintf(`{"payload":%s}`, value)}
	case 12:
		return command{"Ipc.Receive", fmt.Sprintf(`{"pid":%d,"max":1}`, pid)}
	default:
		return command{"Syscall.CommitDelta", fmt.Sprintf(`{"pid":%d,"changes":{"x":%d}}`, pid, rapid.IntRange(1, 3).Draw(t, "x"))}
	}
}

// undoable reports whether a command that succeeded can be undone immediately, without changes in between.
func undoable(c command, answer schema.Value) bool {
	switch c.typ {
	case "Syscall.SendMsg":
		return bytes.Contains(answer, []byte(`"DELIVERED"`))
	case "Ipc.Broadcast":
		return !bytes.Contains(answer, []byte(`"delivered":[]`))
	}
	return strings.HasPrefix(c.typ, "Memory.") || strings.HasPrefix(c.typ, "Capability.")
}

// pair has two entries whose states must be equal: before a command, and after its undo; or after a command, and after the
// undo of its undo.
type pair struct {
	before, after int64
	why           string
}

// TestUndoProperty: in random histories, the state of all parts after a command and its undo is that before, and the state
// after the undo of the undo is that after the command. Numbers of messages are ignored, since they are never reused.
func TestUndoProperty(t *testing.T) {
	t.Parallel()
	var w *world
	var pairs []pair
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		if histories%perKernel == 0 {
			checkPairs(t, w, pairs)
			w, pairs = newWorld(t), nil
		}
		histories++
		for range rapid.IntRange(1, 6).Draw(rt, "commands") {
			c := drawn(rt)
			answer, seq, err := w.do(c.typ, c.data)
			if err != nil || !undoable(c, answer) || rapid.IntRange(0, 2).Draw(rt, "kept") == 0 {
				continue
			}
			by, err := w.undo(seq)
			if err != nil {
				rt.Fatalf("undo of %s %s: %v", c.typ, c.data, err)
			}
			what := c.typ + " " + c.data
			pairs = append(pairs, pair{seq - 1, by, what + ", undone"})
			if _, err := w.undo(seq); !errors.Is(err, fault.UndoAlready) {
				rt.Fatalf("%s, undone twice: %v", what, err)
			}
			if rapid.Bool().Draw(rt, "again") {
				again, err := w.undo(by)
				if err != nil {
					rt.Fatalf("undo of the undo of %s: %v", what, err)
				}
				pairs = append(pairs, pair{seq, again, what + ", done again"})
			}
		}
	})
	checkPairs(t, w, pairs)
}

// checkPairs folds the journal once, and compares the states of pairs.
func checkPairs(t *testing.T, w *world, pairs []pair) {
	t.Helper()
	if w == nil {
		return
	}
	testkit.Must(t, w.Close())
	w.stop()
	wanted := make(map[uint64]string)
	for _, p := range pairs {
		wanted[uint64(p.before)], wanted[uint64(p.after)] = "", ""
	}
	fold(t, w.journal(), func(seq uint64, domains map[schema.Domain]kernel.Domain) {
		if _, ok := wanted[seq]; ok {
			wanted[seq] = picture(domains)
		}
	})
	for _, p := range pairs {
		if before, after := wanted[uint64(p.before)], wanted[uint64(p.after)]; before != after || before == "" {
			t.Errorf("%s: the states at %d and %d differ: %s", p.why, p.before, p.after, cmp.Diff(before, after))
		}
	}
	testkit.Must(t, os.RemoveAll(w.cfg.StateDir))
}

// fold builds the domains that have a state, and calls at after each entry.
func fold(t *testing.T, dir string, at func(seq uint64, domains map[schema.Domain]kernel.Domain)) {
	t.Helper()
	processes := process.New([]string{"gpu"})
	view := processes.Processes()
	tokens := capability.New([]string{"gpu"}, view)
	domains := map[schema.Domain]kernel.Domain{
		schema.Process: processes, schema.Capability: tokens, schema.Delta: delta.New(view), schema.Ipc: ipc.New(ipc.Options{}),
		schema.Memory:   testkit.Value(memory.New(schema.Value(`{}`), view))(t),
		schema.Resource: testkit.Value(resource.New(map[string]float64{"gpu": 8}, tokens, view))(t),
	}
	reader := journal.NewReader(nil, dir, journal.ReaderOptions{})
	defer reader.Close() // read only
	testkit.Must(t, record.Fold(context.Background(), reader, domains, nil, func(record *journal.Record, _ *kernel.Call) error {
		at(record.Seq, domains)
		return nil
	}))
}

// lastMessage matches the number of the latest message in a picture, and the recipients of the next one.
var lastMessage = regexp.MustCompile(`\{"last":[0-9]+(,"addressed":\[[0-9,]*\])?\}`)

// picture returns the state of all domains.
func picture(domains map[schema.Domain]kernel.Domain) string {
	var b strings.Builder
	names := make([]string, 0, len(domains))
	for name := range domains {
		names = append(names, string(name))
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "%s:", name)
		_ = domains[schema.Domain(name)].Snapshot()(func(chunk []byte) error {
			_, err := fmt.Fprintf(&b, " %q", lastMessage.ReplaceAll(chunk, nil))
			return err
		})
		b.WriteByte('\n')
	}
	return b.String()
}

// TestReplayProperty: in random histories, Message.Replay gives for an entry what the kernel itself answered after it.
func TestReplayProperty(t *testing.T) {
	t.Parallel()
	var w *world
	histories := 0
	rapid.Check(t, func(rt *rapid.T) {
		if histories%perKernel == 0 {
			if w != nil {
				testkit.Must(t, w.Close())
				w.stop()
				testkit.Must(t, os.RemoveAll(w.cfg.StateDir))
			}
			w = newWorld(t)
		}
		histories++
		type said struct {
			seq       int64
			ask, data string // the query to the kernel
			member    string // of the replay's answer
			question  string
			answer    string
		}
		var all []said
		for range rapid.IntRange(1, 5).Draw(rt, "commands") {
			c := drawn(rt)
			_, seq, _ := w.do(c.typ, c.data)
			if seq == 0 {
				continue
			}
			key, pid := keys.Draw(rt, "asked key"), pids.Draw(rt, "asked pid")
			for _, s := range []said{
				{ask: "Memory.Get", data: fmt.Sprintf(`{"key":%q}`, key), member: "value", question: fmt.Sprintf(`"key":%q`, key)},
				{ask: "Process.Get", data: fmt.Sprintf(`{"pid":%d}`, pid), member: "process", question: fmt.Sprintf(`"pid":%d`, pid)},
				{ask: "Syscall.GetState", data: fmt.Sprintf(`{"target_pid":%d}`, pid), member: "memory", question: fmt.Sprintf(`"pid":%d`, pid)},
				{ask: "Capability.Get", data: fmt.Sprintf(`{"pid":%d}`, pid), member: "token", question: fmt.Sprintf(`"pid":%d`, pid)},
			} {
				s.seq = seq
				if answer, _, err := w.do(s.ask, s.data); err == nil {
					s.answer = string(answer)
				}
				all = append(all, s)
			}
		}
		for _, s := range all {
			answer, _, err := w.do("Message.Replay", fmt.Sprintf(`{"until_seq":%d,%s}`, s.seq, s.question))
			if s.ask == "Memory.Get" && s.answer == "" {
				if !errors.Is(err, fault.MemoryNotFound) {
					rt.Fatalf("%s %s had no answer at %d, a replay %s, %v", s.ask, s.data, s.seq, answer, err)
				}
				continue
			}
			if err != nil {
				rt.Fatalf("replay of %+v: %v", s, err)
			}
			if again := member(answer, s.member); !tells(s.member, s.answer, again) {
				rt.Fatalf("%s %s was answered at %d with\n%s, a replay with\n%s", s.ask, s.data, s.seq, s.answer, answer)
			}
		}
	})
}

// member returns the exact text of a member of an object; "" if it has none.
func member(object schema.Value, name string) (text string) {
	jsontype.Members(object, func(key, value []byte) bool {
		if string(key) == name {
			text = string(value)
		}
		return text == ""
	})
	return text
}

// tells reports whether the kernel's answer contains that of a replay.
func tells(member, said, again string) bool {
	switch member {
	case "token": // Capability.Get has other members too
		return (again == "") == (said == "") && strings.HasPrefix(said, strings.TrimSuffix(again, "}"))
	case "memory":
		return again == "" && !strings.Contains(said, `"memory":`) || again != "" && strings.HasSuffix(said, `"memory":`+again+"}")
	}
	return said == again
}
