package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// agents is the number of processes of each world.
const agents = 4

// world is a kernel with its operator, and some processes.
type world struct {
	*client.Client

	ctx  context.Context
	cfg  config.Config
	stop func()
}

func newWorld(t testing.TB) *world {
	t.Helper()
	cfg := testkernel.Settings(testkit.NewPlace(t, ""))
	cfg.Clock.Interval = 0
	cfg.Resources = map[string]float64{"gpu": 8}
	cfg.Ipc.Mailbox = 3
	w := &world{cfg: cfg, ctx: context.Background()}
	w.stop = testkernel.Start(t, cfg)
	w.Client = testkernel.Dial(t, cfg.RuntimeDir)
	for i := range agents {
		w.must(t, "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"a%d","capabilities":{"allowed_syscalls":["Memory.*","Message.Replay","Ipc.Receive"],"resource_quotas":{"gpu":1}}}`, i+1))
	}
	return w
}

// journal returns the directory of the kernel's journal.
func (w *world) journal() string { return filepath.Join(w.cfg.StateDir, "journal") }

// do makes a call, and returns the answer with its entry.
func (w *world) do(typ, data string) (schema.Value, int64, error) {
	row, ok := schema.Lookup(typ)
	if !ok {
		return nil, 0, errors.New("no syscall " + typ)
	}
	answer, err := w.Do(w.ctx, schema.Message{Kind: row.Kind, Type: typ, Data: []byte(data)})
	return answer.Data, client.SeqOf(&answer), err
}

func (w *world) must(t testing.TB, typ, data string) (schema.Value, int64) {
	t.Helper()
	answer, seq, err := w.do(typ, data)
	if err != nil {
		t.Fatalf("%s %s: %v", typ, data, err)
	}
	return answer, seq
}

// refused makes a call that must fail with an id, and a text.
func (w *world) refused(t testing.TB, id fault.ID, typ, data, text string) {
	t.Helper()
	if _, _, err := w.do(typ, data); !errors.Is(err, id) || !strings.Contains(err.Error(), text) {
		t.Errorf("%s %s: %v, want %s with %q", typ, data, err, id, text)
	}
}

// undo undoes an entry, and returns the entry of the undo.
func (w *world) undo(seq int64) (int64, error) {
	data, _, err := w.do("Message.Undo", fmt.Sprintf(`{"seq":%d}`, seq))
	if err != nil {
		return 0, err
	}
	var out struct{ By int64 }
	return out.By, json.Unmarshal(data, &out)
}
