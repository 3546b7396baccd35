package state_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestUndo: the error of an undo that is not possible has the reason, and names what was changed since.
func TestUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	undo := func(seq int64) string { return fmt.Sprintf(`{"seq":%d}`, seq) }
	_, first := w.must(t, "Memory.Set", `{"key":"a","value":1}`)
	_, second := w.must(t, "Memory.Set", `{"pid":2,"key":"/a","value":2}`)
	w.refused(t, fault.UndoOvertaken, "Message.Undo", undo(first), fmt.Sprintf("changed by seq %d of pid 2 (Memory.Set)", second))

	// The latest first: a change and its undo cancel each other out.
	by, err := w.undo(second)
	testkit.Must(t, err)
	w.refused(t, fault.UndoAlready, "Message.Undo", undo(second), fmt.Sprintf("already undone by seq %d", by))
	_, err = w.undo(first)
	testkit.Must(t, err)
	w.refused(t, fault.MemoryNotFound, "Memory.Get", `{"key":"a"}`, "")

	_, failed, _ := w.do("Memory.Delete", `{"key":"none"}`)
	w.refused(t, fault.UndoNothing, "Message.Undo", undo(failed), "was refused or failed")
	_, asked := w.must(t, "Memory.List", `{}`)
	w.refused(t, fault.UndoNothing, "Message.Undo", undo(asked), "only asks")
	_, spawned := w.must(t, "Syscall.Spawn", `{"child_agent_id":"x"}`)
	w.refused(t, fault.UndoImpossible, "Message.Undo", undo(spawned), "cannot be made as it was")
	_, advanced := w.must(t, "Clock.Advance", `{"ticks":1}`)
	w.refused(t, fault.UndoImpossible, "Message.Undo", undo(advanced), "Clock.Advance")
	_, budget := w.must(t, "Capability.Grant", `{"pid":1,"allowed_syscalls":[],"budget":{"calls":5}}`)
	w.refused(t, fault.UndoImpossible, "Message.Undo", undo(budget), "budget")
	w.refused(t, fault.ReplayBeyond, "Message.Undo", `{"seq":1000000}`, "the last is")
	w.refused(t, fault.WireInvalidInput, "Message.Undo", `{"seq":0}`, "seq")
	w.refused(t, fault.WireInvalidInput, "Message.Undo", `{}`, "seq")

	// The token of an ended process is removed with it.
	_, granted := w.must(t, "Capability.Grant", `{"pid":3,"allowed_syscalls":["Memory.Get"]}`)
	w.must(t, "Syscall.Terminate", `{"target_pid":3}`)
	w.refused(t, fault.UndoOvertaken, "Message.Undo", undo(granted), "Capability.Strip")
	_, sent := w.must(t, "Syscall.SendMsg", `{"receiver_pid":4,"payload":1}`)
	w.must(t, "Syscall.Terminate", `{"target_pid":4}`)
	w.refused(t, fault.UndoOvertaken, "Message.Undo", undo(sent), "unread")
}

// TestDryRun: a dry run says what an undo would do or why it would fail, and changes nothing.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, set := w.must(t, "Memory.Set", `{"key":"a","value":1}`)
	_, sent := w.must(t, "Ipc.Broadcast", `{"payload":1}`)
	w.must(t, "Ipc.Receive", `{"pid":2}`)
	for range 2 {
		said, _ := w.must(t, "Message.Undo", fmt.Sprintf(`{"seq":%d,"dry_run":true}`, set))
		if want := fmt.Sprintf(`{"seq":%d,"type":"Memory.Set","pid":0,"dry_run":true,"origin":"https://pwos.local/","key":"/a","removed":true}`, set); string(said) != want {
			t.Errorf("a dry run says %s, want %s", said, want)
		}
		said, _ = w.must(t, "Message.Undo", fmt.Sprintf(`{"seq":%d,"dry_run":true}`, sent))
		if want := `"taken":[1,3,4],"read":[2]}`; !strings.HasSuffix(string(said), want) {
			t.Errorf("a dry run says %s, want %s", said, want)
		}
	}
	w.must(t, "Memory.Get", `{"key":"a"}`)
	for _, pid := range []int{1, 3, 4} {
		w.must(t, "Ipc.Receive", fmt.Sprintf(`{"pid":%d}`, pid))
	}
	w.refused(t, fault.UndoOvertaken, "Message.Undo", fmt.Sprintf(`{"seq":%d,"dry_run":true}`, sent), "unread")
}

// TestUndoBesideWriters: an undo takes effect in one step. While others write the key, it either finds their entries in the
// journal, or undoes a change that is still in effect: it never overwrites the value of a writer that was answered before.
func TestUndoBesideWriters(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	undone, refused := 0, 0
	for round := range 30 {
		key := fmt.Sprintf("k%d", round)
		w.must(t, "Memory.Set", fmt.Sprintf(`{"key":%q,"value":"before"}`, key))
		_, seq := w.must(t, "Memory.Set", fmt.Sprintf(`{"key":%q,"value":"changed"}`, key))
		other := testkernel.Dial(t, w.cfg.RuntimeDir)
		var writers sync.WaitGroup
		writers.Go(func() {
			_, _ = other.Do(context.Background(), schema.Message{Kind: schema.KindCommand, Type: "Memory.Set", Data: fmt.Appendf(nil, `{"key":%q,"value":"written"}`, key)})
		})
		by, err := w.undo(seq)
		writers.Wait()
		value, _ := w.must(t, "Memory.Get", fmt.Sprintf(`{"key":%q}`, key))
		switch {
		case errors.Is(err, fault.UndoOvertaken):
			refused++
		case err != nil:
			t.Fatal(err)
		default:
			undone++
			if by == 0 {
				t.Error("an undo has no entry")
			}
		}
		if string(value) != `"written"` { // the writer's value is there before a refused undo, and after a successful one
			if err != nil || string(value) != `"before"` {
				t.Errorf("round %d: the value is %s, the error of the undo %v", round, value, err)
			}
			at, _ := w.must(t, "Message.Replay", fmt.Sprintf(`{"until_seq":%d,"key":%q}`, by-1, key))
			if !strings.HasSuffix(string(at), `"value":"changed"}`) {
				t.Errorf("round %d: the undo has replaced the value of another writer: %s", round, at)
			}
		}
	}
	t.Logf("%d undone, %d refused", undone, refused)
}

// TestUndoTwiceAtOnce: of many concurrent undos of one entry, one succeeds.
func TestUndoTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, "Memory.Set", `{"key":"a","value":1}`)
	_, seq := w.must(t, "Memory.Set", `{"key":"a","value":2}`)
	var all sync.WaitGroup
	answers := make(chan error, 4)
	for range cap(answers) {
		c := testkernel.Dial(t, w.cfg.RuntimeDir)
		all.Go(func() {
			_, err := c.Do(context.Background(), schema.Message{Kind: schema.KindCommand, Type: "Message.Undo", Data: fmt.Appendf(nil, `{"seq":%d}`, seq)})
			answers <- err
		})
	}
	all.Wait()
	close(answers)
	done := 0
	for err := range answers {
		if err == nil {
			done++
		} else if !errors.Is(err, fault.UndoAlready) {
			t.Errorf("another undo: %v", err)
		}
	}
	if done != 1 {
		t.Errorf("%d undos of one entry", done)
	}
}

// TestAgentLooksBack: an agent sees of the past only what it may read now: its own keys while Memory.Get is granted,
// itself, no summary. It can undo nothing.
func TestAgentLooksBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, seq := w.must(t, "Memory.Set", `{"pid":1,"key":"a","value":1}`)
	w.must(t, "Memory.Delete", `{"pid":1,"key":"a"}`)
	w.must(t, "Capability.Grant", `{"pid":1,"allowed_syscalls":["Memory.*","Message.Replay","Process.Get"]}`)
	agent := testkernel.Dial(t, w.cfg.RuntimeDir)
	ask := func(typ, data string) (string, error) {
		row, _ := schema.Lookup(typ)
		answer, err := agent.Do(context.Background(), schema.Message{Kind: row.Kind, Type: typ, Data: []byte(data)})
		return string(answer.Data), err
	}
	if _, err := ask("Process.Attach", `{"agent_id":"a1"}`); err != nil {
		t.Fatal(err)
	}
	key := fmt.Sprintf(`{"until_seq":%d,"key":"a"}`, seq)
	if said, err := ask("Message.Replay", key); err != nil || !strings.HasSuffix(said, `"value":1}`) {
		t.Errorf("the agent's key: %s, %v", said, err)
	}
	if said, err := ask("Message.Replay", fmt.Sprintf(`{"until_seq":%d,"pid":1}`, seq)); err != nil || !strings.Contains(said, `"agent_id":"a1"`) || strings.Contains(said, `"token"`) {
		t.Errorf("the agent itself: %s, %v, want no token, which it may not read now", said, err)
	}
	for data, id := range map[string]fault.ID{
		fmt.Sprintf(`{"until_seq":%d}`, seq):           fault.CapabilityOperatorOnly,
		fmt.Sprintf(`{"until_seq":%d,"pid":2}`, seq):   fault.CapabilityNotYours,
		fmt.Sprintf(`{"until_seq":%d,"pid":999}`, seq): fault.CapabilityNotYours,
	} {
		if said, err := ask("Message.Replay", data); !errors.Is(err, id) {
			t.Errorf("%s: %s, %v, want %s", data, said, err, id)
		}
	}
	if _, err := ask("Message.Undo", fmt.Sprintf(`{"seq":%d}`, seq)); !errors.Is(err, fault.CapabilityOperatorOnly) {
		t.Errorf("an undo by the agent: %v", err)
	}
	w.must(t, "Capability.Grant", `{"pid":1,"allowed_syscalls":["Memory.List","Message.Replay"]}`)
	if said, err := ask("Message.Replay", key); !errors.Is(err, fault.CapabilityDenied) {
		t.Errorf("a value that the agent may no longer read: %s, %v", said, err)
	}
}

// TestRewindAcrossRestarts: neither snapshots nor a rebuilt state change the answers of an undo and a replay.
func TestRewindAcrossRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must(t, "Memory.Set", `{"key":"a","value":"first"}`)
	_, seq := w.must(t, "Memory.Set", `{"key":"a","value":"second"}`)
	testkit.Must(t, w.Close())
	w.stop()
	w.stop = testkernel.Start(t, w.cfg)
	w.Client = testkernel.Dial(t, w.cfg.RuntimeDir)
	said, _ := w.must(t, "Message.Replay", fmt.Sprintf(`{"until_seq":%d,"key":"a"}`, seq-1)) // older than the snapshots
	if !strings.HasSuffix(string(said), `"value":"first"}`) {
		t.Errorf("before: %s", said)
	}
	head := seqOf(t, w)
	said, _ = w.must(t, "Message.Replay", fmt.Sprintf(`{"until_seq":%d,"key":"a"}`, head))
	if !strings.HasSuffix(string(said), `"value":"second"}`) {
		t.Errorf("now: %s", said)
	}
	if _, err := w.undo(seq); err != nil {
		t.Fatal(err)
	}
	if value, _ := w.must(t, "Memory.Get", `{"key":"a"}`); string(value) != `"first"` {
		t.Errorf("after the undo: %s", value)
	}
}

func seqOf(t *testing.T, w *world) int64 {
	t.Helper()
	answer, err := w.Do(w.ctx, schema.Message{Kind: schema.KindQuery, Type: "Syscall.Ping", Data: []byte(`{"payload":1}`)})
	testkit.Must(t, err)
	return client.SeqOf(&answer)
}

// TestUndoIsCausedByWhatItUndoes: the command that undoes an entry names its message as its cause, and has its correlation
// and its origin.
func TestUndoIsCausedByWhatItUndoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for undo, call := range map[string][2]string{
		"Memory.Restore":     {"Memory.Set", `{"key":"a","value":1}`},
		"Capability.Restore": {"Capability.Grant", `{"pid":1,"allowed_syscalls":[]}`},
		"Ipc.Unsend":         {"Syscall.SendMsg", `{"receiver_pid":1,"payload":1}`},
	} {
		answer, err := w.Do(w.ctx, schema.Message{
			Kind: schema.KindCommand, Type: call[0], Data: []byte(call[1]), Meta: schema.Metadata{ID: "id of " + undo, Correlation: "flow of " + undo},
		})
		testkit.Must(t, err)
		_, err = w.undo(client.SeqOf(&answer))
		testkit.Must(t, err)
		log, _ := w.must(t, "Audit.Log", fmt.Sprintf(`{"type":%q}`, undo))
		for _, want := range []string{fmt.Sprintf(`"causation":"id of %s"`, undo), fmt.Sprintf(`"correlation":"flow of %s"`, undo)} {
			if !strings.Contains(string(log), want) {
				t.Errorf("%s: %s lacks %s", undo, log, want)
			}
		}
	}
}
