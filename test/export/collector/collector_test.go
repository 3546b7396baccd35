package collector_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

// received is what the receiver passes on: how often each record arrived, and the ids of its spans.
type received struct {
	mu    sync.Mutex
	times map[string]int
	spans map[string]string
	came  chan struct{} // a record arrived; capacity 1
	wrong []string
}

func (r *received) take(_ context.Context, traces ptrace.Traces) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range traces.ResourceSpans().All() {
		for _, in := range of.ScopeSpans().All() {
			for _, span := range in.Spans().All() {
				id, _ := span.Attributes().Get("pwos.record.id")
				as := span.TraceID().String() + "/" + span.SpanID().String()
				if before, again := r.spans[id.Str()]; again && before != as {
					r.wrong = append(r.wrong, fmt.Sprintf("record %s is the spans %s and %s", id.Str(), before, as))
				}
				r.times[id.Str()]++
				r.spans[id.Str()] = as
			}
		}
	}
	select {
	case r.came <- struct{}{}:
	default:
	}
	return nil
}

// listen starts the collector's receiver for OTLP over HTTP.
func listen(t *testing.T) (*received, string) {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	address := free.Addr().String()
	must(t, free.Close())
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig()
	must(t, confmap.NewFromStringMap(map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": address}}}).Unmarshal(config))
	r := &received{times: make(map[string]int), spans: make(map[string]string), came: make(chan struct{}, 1)}
	next, err := consumer.NewTraces(r.take)
	must(t, err)
	of, err := factory.CreateTraces(t.Context(), receivertest.NewNopSettings(factory.Type()), config, next)
	must(t, err)
	must(t, of.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { must(t, of.Shutdown(context.Background())) })
	return r, "http://" + address
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kernel is a kernel of the real binaries.
type kernel struct{ program, dir string }

func start(t *testing.T) *kernel {
	t.Helper()
	k := &kernel{dir: t.TempDir()}
	k.program = filepath.Join(k.dir, "pwos")
	build := exec.Command("go", "build", "-o", k.program, "./cmd/pwos")
	build.Dir, build.Env = "../../..", append(os.Environ(), "GOFLAGS=-buildvcs=false")
	out, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	t.Cleanup(func() { k.run(t, "", "shutdown") })
	return k
}

func (k *kernel) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, k.program, args...)
	c.Env = append(os.Environ(), "HOME="+k.dir, "PWOS_RUNTIME_DIR="+k.dir+"/r", "PWOS_STATE_DIR="+k.dir+"/s", "XDG_CONFIG_HOME="+k.dir+"/c", "PWOS_CONFIG=")
	c.Dir = k.dir
	return c
}

func (k *kernel) run(t *testing.T, input string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := k.command(ctx, args...)
	c.Stdin = strings.NewReader(input)
	var problem strings.Builder
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		t.Fatalf("pwos %s: %v\n%s", strings.Join(args, " "), err, problem.String())
	}
	return string(out)
}

// calls makes n commands.
func (k *kernel) calls(t *testing.T, n int) {
	t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"kind":"command","type":"Memory.Set","data":{"key":"k/%d","value":%d},"metadata":{"id":"m-%d-%d","timestamp":0,"correlation":"flow"}}`+"\n", i, i, n, i)
	}
	k.run(t, lines.String())
}

// records returns the ids of the journal's entries before the export of this call.
func (k *kernel) records(t *testing.T) []string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(k.run(t, "", "export", "jsonl")) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, `{"id":"`), `"`)
		ids = append(ids, id)
	}
	return ids
}

// TestCollector: the collector's own receiver accepts each record as one span.
func TestCollector(t *testing.T) {
	r, url := listen(t)
	k := start(t)
	k.calls(t, 200)
	want := k.records(t)
	k.run(t, "", "export", "otlp", "--to", url)
	for _, id := range want {
		if r.times[id] != 1 {
			t.Errorf("record %s arrived %d times", id, r.times[id])
		}
	}
}

// TestKilled: an exporter that is killed at any moment loses nothing, and what it sends again is the same span. PWOS_LONG=1
// kills 50 of them.
func TestKilled(t *testing.T) {
	r, url := listen(t)
	k := start(t)
	rounds := 5
	if os.Getenv("PWOS_LONG") != "" {
		rounds = 50
	}
	for n := range rounds {
		c := k.command(t.Context(), "export", "otlp", "--to", url, "--cursor", "seen", "--follow")
		must(t, c.Start())
		k.calls(t, 100+n)
		select { // any moment is suitable, for example that of the first records
		case <-r.came:
		case <-time.After(time.Minute):
			t.Fatal("no record arrived")
		}
		must(t, c.Process.Kill())
		_ = c.Wait() // it was killed
	}
	want := k.records(t)
	k.run(t, "", "export", "otlp", "--to", url, "--cursor", "seen")
	again := 0
	for _, id := range want {
		switch n := r.times[id]; {
		case n == 0:
			t.Errorf("record %s is missing", id)
		case n > 1:
			again++
		}
	}
	for _, w := range r.wrong {
		t.Error(w)
	}
	t.Logf("%d records, %d of them arrived again", len(want), again)
}
