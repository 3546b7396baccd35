package console_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/console"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// watched is a kernel with a console.
type watched struct {
	*testkit.Place
	console *console.Server
	kernel  *client.Client // the operator
	stop    func()         // stops the kernel
}

// watch runs a kernel and its console until the test ends.
func watch(t *testing.T, policy string) *watched {
	t.Helper()
	s := &watched{Place: testkit.NewPlace(t, "")}
	s.start(t, policy, config.Cluster{})
	s.show(t)
	return s
}

// start runs the kernel, and connects to it.
func (s *watched) start(t *testing.T, policy string, of config.Cluster) {
	t.Helper()
	cfg := testkernel.Settings(s.Place)
	if policy != "" {
		cfg.File = s.Path("config.toml")
		testkit.WriteFile(t, s.Path("policy.cedar"), policy)
	}
	if of.Name != "" {
		cfg.Cluster.Name, cfg.Cluster.Bus, cfg.Cluster.Members = of.Name, of.Bus, of.Members
	}
	s.stop = testkernel.Start(t, cfg)
	s.kernel = testkernel.Dial(t, s.RuntimeDir())
}

// show runs the console of the kernel.
func (s *watched) show(t *testing.T) {
	t.Helper()
	listener := testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s.console = testkit.Value(console.New(console.Options{
		Listener: listener,
		Dial: func(ctx context.Context) (*client.Client, error) {
			return client.Dial(ctx, client.Options{RuntimeDir: s.RuntimeDir(), Patience: testkit.Patience})
		},
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.console.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		testkit.Receive(t, ended, "the console's end")
	})
}

// do makes a call that must succeed, as the operator.
func (s *watched) do(t *testing.T, typ, data string, args ...any) schema.Value {
	t.Helper()
	row, _ := schema.Lookup(typ)
	m, err := s.kernel.Do(testkit.Context(t), schema.Message{Kind: row.Kind, Type: typ, Data: fmt.Appendf(nil, data, args...)})
	if err != nil {
		t.Fatalf("%s %s: %v", typ, fmt.Sprintf(data, args...), err)
	}
	return m.Data
}

// try makes a call that may be refused.
func (s *watched) try(t *testing.T, typ, data string, args ...any) error {
	t.Helper()
	row, _ := schema.Lookup(typ)
	_, err := s.kernel.Do(testkit.Context(t), schema.Message{
		Kind: row.Kind, Type: typ, Data: fmt.Appendf(nil, data, args...), Meta: schema.Metadata{Correlation: "task-7"},
	})
	return err
}

// step makes a call with a correlation and a cause. It may be refused.
func (s *watched) step(t *testing.T, typ, data, id, cause string) {
	t.Helper()
	row, _ := schema.Lookup(typ)
	_, err := s.kernel.Do(testkit.Context(t), schema.Message{Kind: row.Kind, Type: typ, Data: []byte(data), Meta: schema.Metadata{ID: id, Correlation: "release-7", Causation: cause}})
	if err != nil && client.Answered(err) == nil {
		t.Fatal(err)
	}
}

// ask makes a Memory.Set that waits for an approval. Its outcome is received from the channel.
func (s *watched) ask(t *testing.T, data string) <-chan error {
	t.Helper()
	c := testkernel.Dial(t, s.RuntimeDir()) // a waiting call delays the others of its connection
	came := make(chan error, 1)
	go func() {
		_, err := c.Call(context.Background(), schema.KindCommand, "Memory.Set", []byte(data))
		came <- err
	}()
	return came
}

// browserPath returns the browser to test with; the test is skipped if there is none.
func browserPath(t *testing.T) string {
	t.Helper()
	path := os.Getenv("PWOS_BROWSER")
	if path == "" {
		t.Skip("PWOS_BROWSER names no browser")
	}
	return path
}

func quoted(text string) string { return string(schema.AppendString(nil, text)) }

// serveText serves other content than the console, and returns its address.
func serveText(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// pour makes many calls, on several connections.
func (s *watched) pour(t *testing.T, many int) {
	t.Helper()
	const at = 8
	var callers sync.WaitGroup
	for i := range at {
		c := testkernel.Dial(t, s.RuntimeDir())
		callers.Go(func() {
			for j := range many / at {
				if _, err := c.Call(context.Background(), schema.KindCommand, "Memory.Set", fmt.Appendf(nil, `{"pid":1,"key":"k/%d/%d","value":{"n":%d}}`, i, j%100, j)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
}
