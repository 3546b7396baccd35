package daemon_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/effect/login"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// renewer is a program that answers as Codex's app-server does, and has the next login in a file.
const renewer = `#!/bin/sh
[ "$1" = app-server ] || exit 9
read -r initialize && echo '{"id":1,"result":{}}'
read -r initialized && read -r account
case $account in *'"refreshToken":true'*) ;; *) exit 9 ;; esac
cd "$CODEX_HOME"
echo renewal >>renewals
while [ -e wait ]; do sleep 0.01; done
if [ -e dies ]; then exit 3; fi
if [ -e next ]; then
	: >auth.json
	head -c 20 next >>auth.json
	sleep 0.1
	tail -c +21 next >>auth.json
	rm next
	echo '{"id":2,"error":{"code":-32603,"message":"workspace routing discovery failed"}}'
else
	echo '{"id":2,"result":{"account":null}}'
fi
read -r killed
`

// rotating is a login of Codex, at a server that accepts one access token.
type rotating struct {
	*networked
	home     *login.Home
	state    string
	accepted sync.Map // access tokens
	account  sync.Map // of the requests
}

func openRotating(t *testing.T) *rotating {
	t.Helper()
	r := &rotating{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.account.Store(strings.Join(req.Header.Values("ChatGPT-Account-ID"), ","), true)
		if _, good := r.accepted.Load(req.Header.Get("Authorization")); !good {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	r.networked = openNetwork(t, func(c *config.Config) {
		r.state = c.StateDir
		c.Upstream = map[string]config.Upstream{"codex": {URL: server.URL, Header: "Authorization: Bearer", From: "login:codex", Allow: []string{"GET /"}}}
	}, schema.SpawnCapability{AllowedSyscalls: []string{"Upstream:*"}})
	r.home = login.Named(r.state, "codex")
	return r
}

// token returns an access token that ends after a time.
func token(name string, lasts time.Duration) string {
	claims := base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"iat":%d,"exp":%d}`, time.Now().Add(-time.Hour).Unix(), time.Now().Add(lasts).Unix()))
	return "e30." + claims + ".CANARY-" + name
}

// file is the text of the host's file.
func (r *rotating) file(access string) []byte {
	text, err := json.Marshal(map[string]any{"auth_mode": "chatgpt", "tokens": map[string]any{"access_token": access, "refresh_token": "CANARY-refresh", "account_id": "acc"}})
	testkit.Must(r.t, err)
	return text
}

// logIn gives the kernel a login.
func (r *rotating) logIn(access string) {
	r.t.Helper()
	dir, remove, err := r.home.New()
	testkit.Must(r.t, err)
	defer func() { testkit.Must(r.t, remove()) }()
	bin := r.t.TempDir()
	testkit.Must(r.t, errors.Join(os.WriteFile(filepath.Join(dir, "auth.json"), r.file(access), 0o600), os.WriteFile(filepath.Join(bin, "codex"), []byte(renewer), 0o700)))
	testkit.Must(r.t, r.home.Keep(r.t.Context(), dir, map[string]string{"PATH": bin + ":" + os.Getenv("PATH"), "CODEX_HOME": "/nonexistent"}))
}

// leave leaves a file in the home of the host.
func (r *rotating) leave(name string, text []byte) {
	testkit.Must(r.t, os.WriteFile(filepath.Join(r.state, "logins/codex", name), text, 0o600))
}

// renewals is how often the host was asked to renew the login.
func (r *rotating) renewals() int {
	text, err := os.ReadFile(filepath.Join(r.state, "logins/codex/renewals"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		r.t.Error(err)
	}
	return strings.Count(string(text), "renewal")
}

// ask makes a request as an agent.
func (r *rotating) ask(address string) string {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer mine\r\nChatgpt_Account_Id: mine\r\nChatGPT-Account-ID: mine\r\n\r\n")
	all, failed := io.ReadAll(conn)
	return string(all) + fmt.Sprint(errors.Join(err, failed))
}

// TestRotatingLogin: requests of all agents have the access token of a login that its host renews, and what its server needs besides. The
// host does so once for all that wait, when the token ends or the server refuses it; if it does not, the error says what to do. A login
// that is made or removed meanwhile counts at once.
func TestRotatingLogin(t *testing.T) {
	t.Parallel()
	r := openRotating(t)
	one, other := r.upstreams["codex"], listening(t)
	if _, names, _, _ := r.daemon.NetworkNeeds(r.pid, func(int) string { return "" }); len(names) != 0 {
		t.Errorf("without a login there are %v", names)
	}
	if answer := r.ask(one); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "pwos login codex") {
		t.Errorf("without a login: %q", answer)
	}
	defer r.daemon.ServeNetworkOf(r.pid, egress.Sockets{Upstreams: map[string]net.Listener{"codex": other}}, nil)()
	good := func(what string, renewals int) {
		t.Helper()
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if answer := r.ask([]string{one, other.Addr().String()}[i%2]); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
					t.Errorf("%s: %q", what, answer)
				}
			})
		}
		all.Wait()
		if got := r.renewals(); got != renewals {
			t.Errorf("%s: the login was renewed %d times, want %d", what, got, renewals)
		}
	}
	next := func(now, then string) {
		t.Helper()
		r.leave("next", r.file(then))
		r.accepted.Delete("Bearer " + now)
		r.accepted.Store("Bearer "+then, true)
	}

	first, second, third, fourth := token("1", time.Hour), token("2", time.Minute), token("3", time.Hour), token("4", time.Hour)
	r.logIn(first)
	r.accepted.Store("Bearer "+first, true)
	if _, names, _, _ := r.daemon.NetworkNeeds(r.pid, func(int) string { return "" }); len(names) != 1 {
		t.Errorf("with a login there are %v", names)
	}
	good("a login", 0)

	next(first, second)
	if answer := r.ask(one); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "send the request again") {
		t.Errorf("a login that the server refuses: %q", answer)
	}
	if answer := r.ask(other.Addr().String()); !strings.HasPrefix(answer, "HTTP/1.1 200 ") || r.renewals() != 1 {
		t.Errorf("a login that was renewed, %d times: %q", r.renewals(), answer)
	}
	next(second, third)
	good("a login that ends in a minute", 2)

	for i, how := range []string{"fails", "dies"} {
		r.logIn(token(how, -time.Hour))
		r.leave(how, nil)
		for range 3 {
			if answer := r.ask(one); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "codex did not renew its login") || !strings.Contains(answer, "pwos login codex") {
				t.Errorf("the host %s: %q", how, answer)
			}
		}
		if got := r.renewals(); got != 3+i {
			t.Errorf("the host %s: it was asked %d times", how, got-2-i)
		}
	}
	r.logIn(fourth)
	r.accepted.Store("Bearer "+fourth, true)
	good("another login", 4)
	r.account.Range(func(account, _ any) bool {
		if account != "acc" {
			t.Errorf("a request had the account %q", account)
		}
		return true
	})

	if had, err := r.home.Forget(t.Context()); !had || err != nil || r.home.Held() {
		t.Errorf("forget: %t, %v", had, err)
	}
	if answer := r.ask(one); !strings.HasPrefix(answer, "HTTP/1.1 503 ") || !strings.Contains(answer, "holds no login codex") {
		t.Errorf("a login that was removed: %q", answer)
	}
	r.stop()
	if found := testkit.FilesWith(t, "CANARY-", r.dir); found != nil || strings.Contains(r.log.String(), "CANARY-") {
		t.Errorf("%v or the log hold a login", found)
	}
}

// TestLoginIsRemovedDuringRenewal: a login that is removed while its host renews it is removed after that, and does not come back.
func TestLoginIsRemovedDuringRenewal(t *testing.T) {
	t.Parallel()
	r := openRotating(t)
	r.logIn(token("1", -time.Hour))
	renewed := token("2", time.Hour)
	r.leave("next", r.file(renewed))
	r.leave("wait", nil)
	r.accepted.Store("Bearer "+renewed, true)
	var all sync.WaitGroup
	var had bool
	var err error
	all.Go(func() {
		if answer := r.ask(r.upstreams["codex"]); !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
			t.Errorf("the request that waits for the renewal: %q", answer)
		}
	})
	testkit.Eventually(t, "a renewal", func() bool { return r.renewals() == 1 })
	all.Go(func() { had, err = r.home.Forget(t.Context()) })
	testkit.Must(t, os.Remove(filepath.Join(r.state, "logins/codex/wait")))
	all.Wait()
	if left, globbed := filepath.Glob(filepath.Join(r.state, "logins/*")); !had || err != nil || globbed != nil || len(left) != 1 || r.home.Held() {
		t.Errorf("%t, %v: %v is left", had, err, left)
	}
}
