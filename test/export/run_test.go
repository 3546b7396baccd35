package export_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/export"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// kernel is a kernel with some calls in its journal.
type kernel struct {
	*client.Client
	dir  string
	stop func()
}

func start(t *testing.T) *kernel {
	t.Helper()
	p := testkit.NewPlace(t, "")
	k := &kernel{dir: p.RuntimeDir(), stop: testkernel.Start(t, testkernel.Settings(p))}
	k.Client = testkernel.Dial(t, k.dir)
	return k
}

// set makes a number of recorded calls.
func (k *kernel) set(t *testing.T, calls int) {
	t.Helper()
	for i := range calls {
		_, err := client.Call(testkit.Context(t), k.Client, schema.MemorySet, &schema.MemorySetInput{Key: fmt.Sprint("k", i), Value: schema.Value(`"secret"`)})
		testkit.Must(t, err)
	}
}

func (k *kernel) options(sink export.Sink, after export.Position) export.Options {
	return export.Options{
		Sink: sink, After: after, Notice: func(string) {},
		Dial: func(ctx context.Context, _ bool) (*client.Client, error) {
			return client.Dial(ctx, client.Options{RuntimeDir: k.dir, Patience: testkit.Patience})
		},
	}
}

// toFile exports to a file of lines, not live.
func (k *kernel) toFile(t *testing.T, path string) error {
	t.Helper()
	f, err := export.OpenFile(path, export.JSONL)
	if err != nil {
		return err
	}
	return errors.Join(export.Run(testkit.Context(t), k.options(f, f.At())), f.Close())
}

// TestCutAnywhere: after a kill at any byte of a file, the next export completes it: no entry is missing or written
// twice.
func TestCutAnywhere(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.set(t, 3)
	path := testkit.Dir(t) + "/record.jsonl"
	testkit.Must(t, k.toFile(t, path))
	whole := []byte(testkit.ReadFile(t, path))
	before := records(t, whole)
	last := before[len(before)-1]
	if want := logged(t, k.Client, last); !slices.Equal(before, want) {
		t.Fatalf("exported %v, the journal has %v", before, want)
	}
	step := 1 + len(whole)/40
	for cut := 0; cut <= len(whole); cut += step {
		testkit.WriteFile(t, path, string(whole[:cut]))
		testkit.Must(t, k.toFile(t, path))
		text := []byte(testkit.ReadFile(t, path))
		got := records(t, text)
		if !bytes.HasPrefix(text, whole) || !slices.Equal(got, logged(t, k.Client, got[len(got)-1])) {
			t.Fatalf("cut at %d, then exported %v", cut, got)
		}
	}
}

// TestArgumentsStay: requests and payloads are exported only with Options.Arguments.
func TestArgumentsStay(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.set(t, 1)
	for _, with := range []bool{false, true} {
		var out bytes.Buffer
		o := k.options(&export.Stream{To: &out, Format: export.JSONL}, export.Position{})
		o.Arguments = with
		testkit.Must(t, export.Run(testkit.Context(t), o))
		if got := strings.Contains(out.String(), "secret"); got != with {
			t.Errorf("arguments %v: %s", with, out.String())
		}
	}
}

// TestAgentExports: an agent exports its own calls, and cannot ask for arguments.
func TestAgentExports(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.set(t, 1)
	dial := func(ctx context.Context, _ bool) (*client.Client, error) {
		c, err := client.Dial(ctx, client.Options{RuntimeDir: k.dir, Patience: testkit.Patience})
		if err != nil {
			return nil, err
		}
		_, err = client.Call(ctx, c, schema.ProcessAttach, &schema.AttachInput{
			AgentID: "auditor", Capabilities: &schema.SpawnCapability{AllowedSyscalls: []string{"Audit.Subscribe"}},
		})
		return c, err
	}
	var out bytes.Buffer
	o := k.options(&export.Stream{To: &out, Format: export.JSONL}, export.Position{})
	o.Dial = dial
	testkit.Must(t, export.Run(testkit.Context(t), o))
	if got := records(t, out.Bytes()); len(got) != 1 || !strings.Contains(out.String(), `"type":"Audit.Subscribe"`) || !strings.Contains(out.String(), `"status":"denied"`) {
		t.Errorf("an agent exports %s", out.String())
	}
	o.Arguments = true
	if err := export.Run(testkit.Context(t), o); !errors.Is(err, fault.CapabilityOperatorOnly) {
		t.Errorf("with arguments: %v", err)
	}
}

// counting is a sink that stores ids.
type counting struct {
	mu  sync.Mutex
	ids []string
	at  export.Position
}

func (c *counting) Deliver(_ context.Context, batch []*export.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range batch {
		c.ids = append(c.ids, r.ID())
		c.at = r.At
	}
	return nil
}

func (*counting) Close() error { return nil }

func (c *counting) seq() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at.Seq
}

// TestLiveSurvivesTheKernel: a live export continues after a restart of the kernel, without a gap or a repetition.
func TestLiveSurvivesTheKernel(t *testing.T) {
	t.Parallel()
	p := testkit.NewPlace(t, "")
	k := &kernel{dir: p.RuntimeDir()}
	k.stop = testkernel.Start(t, testkernel.Settings(p))
	sink := new(counting)
	o := k.options(sink, export.Position{})
	o.Live = true
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- export.Run(ctx, o) }()
	for range 3 {
		k.Client = testkit.Value(client.Dial(testkit.Context(t), client.Options{RuntimeDir: k.dir, Patience: testkit.Patience}))(t)
		k.set(t, 2)
		answer := testkit.Value(k.Do(testkit.Context(t), schema.Message{Kind: schema.KindQuery, Type: "Syscall.Ping", Data: []byte(`{"payload":1}`)}))(t)
		testkit.Eventually(t, "the export has all entries", func() bool { return sink.seq() >= client.SeqOf(&answer) })
		testkit.Must(t, k.Close())
		k.stop()
		k.stop = testkernel.Start(t, testkernel.Settings(p))
	}
	cancel()
	if err := testkit.Receive(t, ended, "the export's end"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	k.Client = testkernel.Dial(t, k.dir)
	want := logged(t, k.Client, sink.seq())
	if len(sink.ids) != len(want) {
		t.Fatalf("%d records, want %d", len(sink.ids), len(want))
	}
	for i, id := range sink.ids {
		if !strings.HasSuffix(id, fmt.Sprintf("/1/%d", want[i])) {
			t.Errorf("record %d is %s, want entry %d", i, id, want[i])
		}
	}
}

// TestSinkFails: a record that the receiver refuses ends the export, and the cursor does not move.
func TestSinkFails(t *testing.T) {
	t.Parallel()
	k := start(t)
	k.set(t, 1)
	o := k.options(failing{}, export.Position{})
	o.Live = true
	o.Moved = func(at export.Position) error { t.Errorf("moved to %s", at); return nil }
	if err := export.Run(testkit.Context(t), o); !errors.Is(err, os.ErrPermission) {
		t.Error(err)
	}
}

type failing struct{}

func (failing) Deliver(context.Context, []*export.Record) error { return os.ErrPermission }
func (failing) Close() error                                    { return nil }
