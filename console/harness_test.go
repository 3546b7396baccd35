package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/console"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
)

// clock is a clock that the test advances.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// served is a running console server and a client of it.
type served struct {
	*console.Server
	clock  *clock
	web    *http.Client
	kernel *client.Client // the operator
	logins chan struct{}
}

func serve(t *testing.T) *served {
	t.Helper()
	place := testkit.NewPlace(t, "")
	testkernel.Start(t, testkernel.Settings(place))
	s := serveOf(t, func(ctx context.Context) (*client.Client, error) {
		return client.Dial(ctx, client.Options{RuntimeDir: place.RuntimeDir(), Patience: testkit.Patience})
	})
	s.kernel = testkernel.Dial(t, place.RuntimeDir())
	return s
}

// serveOf serves the kernel that dial reaches.
func serveOf(t *testing.T, dial func(context.Context) (*client.Client, error)) *served {
	t.Helper()
	s := &served{clock: &clock{now: time.Now()}, web: &http.Client{Transport: new(http.Transport)}, logins: make(chan struct{}, 100)}
	t.Cleanup(s.web.CloseIdleConnections)
	s.Server = testkit.Value(console.New(console.Options{
		Listener: testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t), Dial: dial, Now: s.clock.Now, LoggedIn: func() { s.logins <- struct{}{} },
	}))(t)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := testkit.Receive(t, ended, "the console's end"); err != context.Canceled { //nolint:errorlint // it is not wrapped
			t.Errorf("the console ended with %v", err)
		}
	})
	return s
}

// answer is an answer of the server.
type answer struct {
	status int
	header http.Header
	body   string
}

// errorID returns the id of the error in the answer, "" if there is none.
func (a *answer) errorID() string {
	var body struct{ Error struct{ ID string } }
	if json.Unmarshal([]byte(a.body), &body) != nil {
		return ""
	}
	return body.Error.ID
}

// ask sends a request, such as "GET /" or "POST /api/login {...}". The functions change modify it before it is sent.
func (s *served) ask(t *testing.T, what, token string, change ...func(*http.Request)) *answer {
	t.Helper()
	method, rest, _ := strings.Cut(what, " ")
	path, body, _ := strings.Cut(rest, " ")
	r := testkit.Value(http.NewRequestWithContext(testkit.Context(t), method, strings.TrimSuffix(s.URL(), "/")+path, strings.NewReader(body)))(t)
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for _, do := range change {
		do(r)
	}
	resp := testkit.Value(s.web.Do(r))(t)
	defer resp.Body.Close()
	return &answer{resp.StatusCode, resp.Header, string(testkit.Value(io.ReadAll(resp.Body))(t))}
}

// secret returns the secret of a new link.
func (s *served) secret() string {
	_, secret, _ := strings.Cut(s.NewLink(), "#")
	return secret
}

// login logs a page in and returns its token.
func (s *served) login(t *testing.T) string {
	t.Helper()
	a := s.ask(t, `POST /api/login {"secret":"`+s.secret()+`"}`, "")
	var body struct{ Token string }
	if json.Unmarshal([]byte(a.body), &body) != nil || len(body.Token) < 40 {
		t.Fatalf("login: %d %s", a.status, a.body)
	}
	return body.Token
}

// do makes a call of the operator that must succeed.
func (s *served) do(t *testing.T, typ, data string, args ...any) {
	t.Helper()
	row, _ := schema.Lookup(typ)
	if _, err := s.kernel.Call(testkit.Context(t), row.Kind, typ, fmt.Appendf(nil, data, args...)); err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
}
