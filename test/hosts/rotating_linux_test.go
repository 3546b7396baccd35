package hosts_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
)

// vendor is a server that behaves as those of Codex's vendor are documented to: a login by a code of a device, access tokens that end,
// refresh tokens of which each is good for one renewal, and the model behind the last access token.
type vendor struct {
	*model
	url string

	mu       sync.Mutex
	logins   int
	renewals int
	access   string
	refresh  string
	accounts map[string]bool
	lasts    time.Duration // of the next access token
}

func newVendor(t *testing.T, steps ...step) *vendor {
	t.Helper()
	v := &vendor{model: newModel(t, steps...), accounts: map[string]bool{}}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	v.url = server.URL
	return v
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/api/accounts/deviceauth/usercode":
		answer(w, object{"device_auth_id": "d", "user_code": "ABCD-1234", "interval": "0", "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
	case r.URL.Path == "/api/accounts/deviceauth/token":
		answer(w, object{"authorization_code": "code", "code_challenge": "c", "code_verifier": "v"})
	case r.URL.Path == "/oauth/token":
		body, _ := io.ReadAll(r.Body)
		v.token(w, string(body))
	case strings.HasPrefix(r.URL.Path, "/backend-api/codex/"):
		v.mu.Lock()
		good := r.Header.Get("Authorization") == "Bearer "+v.access
		v.accounts[strings.Join(r.Header.Values("ChatGPT-Account-ID"), ",")] = true
		v.mu.Unlock()
		if !good {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		v.model.ServeHTTP(w, r)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// token answers a request for tokens.
func (v *vendor) token(w http.ResponseWriter, body string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var asked object
	switch {
	case strings.Contains(body, "grant_type=authorization_code"):
		v.logins++
	case json.Unmarshal([]byte(body), &asked) == nil && asked["refresh_token"] == v.refresh && v.refresh != "":
		v.renewals++
	default:
		w.WriteHeader(http.StatusUnauthorized)
		answer(w, object{"error": object{"code": "refresh_token_reused"}})
		return
	}
	claims, _ := json.Marshal(object{
		"iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(v.lasts).Unix(), "email": "a@b.c", "n": v.renewals,
		"https://api.openai.com/auth": object{"chatgpt_plan_type": "pro", "chatgpt_user_id": "u", "chatgpt_account_id": "acc"},
	})
	v.access = "e30." + base64.RawURLEncoding.EncodeToString(claims) + "." + canary
	v.refresh = fmt.Sprintf("rt-%s-%d", canary, v.renewals)
	answer(w, object{"id_token": v.access, "access_token": v.access, "refresh_token": v.refresh})
}

// memoryHas reports whether the memory of a process that works in dir has a text.
func memoryHas(t *testing.T, dir, text string) (seen int, has bool) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*")
	testkit.Must(t, err)
	for _, process := range processes {
		if at, err := os.Readlink(process + "/cwd"); err != nil || at != dir {
			continue
		}
		maps, err := os.Open(process + "/maps")
		if err != nil {
			continue // it has ended
		}
		memory, err := os.Open(process + "/mem")
		if err != nil {
			_ = maps.Close()
			continue
		}
		seen++
		for lines := bufio.NewScanner(maps); lines.Scan(); {
			var from, to int64
			var mode string
			if n, _ := fmt.Sscanf(lines.Text(), "%x-%x %s", &from, &to, &mode); n != 3 || !strings.HasPrefix(mode, "rw") || to-from > 1<<30 {
				continue
			}
			part, _ := io.ReadAll(io.NewSectionReader(memory, from, to-from)) // what cannot be read is no memory
			has = has || strings.Contains(string(part), text)
		}
		testkit.Must(t, errors.Join(maps.Close(), memory.Close()))
	}
	return seen, has
}

// TestCodexLogin: the login of "codex login" is made in a home that only the kernel has. Codex inside works with it, and has none of it: no
// variable, no file, no memory. Codex renews it there, once for two agents, when its token ends and when the server refuses it. The user's
// own login is another one.
func TestCodexLogin(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	look := step{tool: "exec_command", input: object{"cmd": "sh ./look"}}
	v := newVendor(t, look)
	v.steps[0].before = func() {
		if seen, has := memoryHas(t, p.Path("project"), canary); seen == 0 || has {
			t.Errorf("of %d processes one has the login in its memory: %t", seen, has)
		}
	}
	testkit.Must(t, errors.Join(os.Mkdir(p.Path("home/.codex"), 0o700), os.WriteFile(p.Path("home/.codex/auth.json"), []byte("mine"), 0o600),
		os.WriteFile(p.Path("project/look"), []byte("(env; cat /proc/*/environ | tr '\\0' '\\n'; grep -rsa "+canary[:9]+"[^x]"+canary[10:]+" ~ . /tmp) >>seen 2>&1; true"), 0o600)))
	shipped := new(config.Config).Upstreams()["codex"]
	p.configure(fmt.Sprintf("[upstream.codex]\nurl = %q\nheader = %q\nfrom = \"login:codex\"\nallow = [\"%s\"]\n",
		v.url+"/backend-api/codex", shipped.Header, strings.Join(shipped.Allow, `", "`)))
	p.env = append(p.env, "OPENAI_API_KEY=", "CODEX_REFRESH_TOKEN_URL_OVERRIDE="+v.url+"/oauth/token")
	two := func(what string, renewals int) {
		t.Helper()
		v.mu.Lock()
		before := v.renewals
		v.mu.Unlock()
		var all sync.WaitGroup
		for _, name := range []string{"one", "two"} {
			all.Go(func() {
				if out, err := p.try("pwos", "run", "--name", name, "--budget", "usd=100", "--", "codex", "exec", "-m", "x", "--skip-git-repo-check", "go"); err != nil {
					t.Errorf("%s: %s: %v: %s", what, name, err, out)
				}
			})
		}
		all.Wait()
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.renewals-before != renewals {
			t.Errorf("%s: the login was renewed %d times, want %d", what, v.renewals-before, renewals)
		}
		v.expect(what, "")
	}

	v.lasts = time.Hour
	if out := p.run("pwos", "login", "codex", "--device-auth", "--experimental_issuer", v.url); v.logins != 1 || !strings.Contains(out, "the kernel has the login codex") {
		t.Errorf("%d logins: %s", v.logins, out)
	}
	two("a login", 0)
	v.mu.Lock()
	v.access = "another"
	v.mu.Unlock()
	two("a login that the server refuses", 1)
	v.lasts = time.Minute
	p.run("pwos", "login", "codex", "--device-auth", "--experimental_issuer", v.url)
	v.lasts = time.Hour
	two("a login that ends in a minute", 1)

	if seen := testkit.ReadFile(t, p.Path("project/seen")); strings.Contains(seen, canary) || !strings.Contains(seen, "PWOS_UPSTREAM_CODEX") {
		t.Errorf("inside there is %s", seen)
	}
	if log := p.run("pwos", "audit", "log", "--type", "Net.Request"); !strings.Contains(log, `"micro_usd":`) {
		t.Errorf("nothing was counted: %s", log)
	}
	if mine := testkit.ReadFile(t, p.Path("home/.codex/auth.json")); mine != "mine" || len(v.accounts) != 1 || !v.accounts["acc"] {
		t.Errorf("the user's own login is %q, and the server saw the accounts %v", mine, v.accounts)
	}
	v.mu.Lock()
	v.access, v.refresh = "", ""
	v.mu.Unlock()
	out, err := p.try("pwos", "run", "--", "codex", "exec", "-m", "x", "--skip-git-repo-check", "go")
	if err == nil || !strings.Contains(out, "pwos login codex") {
		t.Errorf("a login that has ended: %v: %s", err, out)
	}
	p.run("pwos", "logout", "codex")
	p.run("pwos", "shutdown")
	for _, dir := range []string{p.StateDir(), p.RuntimeDir(), p.Path("home"), p.Path("project")} {
		if _, err := os.Stat(dir); err == nil {
			if found := testkit.FilesWith(t, canary, dir); found != nil {
				t.Errorf("%v hold the login", found)
			}
		}
	}
}
