package login_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/login"
	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/lockfile"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestTokens: what the file of a login has; one without tokens that can be renewed, or that a header could not hold, is none. A token is
// renewed ten minutes before its end, and one that does not last long a quarter of its time before.
func TestTokens(t *testing.T) {
	t.Parallel()
	k := login.NewKeeper(login.Named(t.TempDir(), "codex"), nil, slog.New(slog.DiscardHandler))
	text := func(access, refresh, account string) string {
		all, err := json.Marshal(map[string]any{"auth_mode": "chatgpt", "tokens": map[string]string{"access_token": access, "refresh_token": refresh, "account_id": account}})
		testkit.Must(t, err)
		return string(all)
	}
	jwt := func(claims string) string {
		return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".x"
	}
	for access, expires := range map[string]int64{
		"opaque": 0, "a.b.c": 0, jwt(`{}`): 0, jwt(`{"exp":"x"}`): 0,
		jwt(`{"iat":100000,"exp":964000}`): 963400, jwt(`{"iat":1000,"exp":1400}`): 1300, jwt(`{"exp":964000}`): 963400, jwt(`{"iat":9,"exp":5}`): 5,
	} {
		got := k.Read(text(access, "r", "acc"))
		if got == nil || got.Access != access || got.Expires != expires || k.Headers(access)["ChatGPT-Account-ID"] != "acc" || k.Headers("other") != nil {
			t.Errorf("%s: %+v, want %d", access, got, expires)
		}
	}
	for _, bad := range []string{
		"", "[]", "{", `{"OPENAI_API_KEY":"sk"}`, `{"tokens":null}`, `{"tokens":{"access_token":1,"refresh_token":"r"}}`,
		text("a", "", "x"), text("", "r", "x"), text("a\nb", "r", "x"), text("a", "r", "x y"),
	} {
		if got := k.Read(bad); got != nil {
			t.Errorf("%q: %+v", bad, got)
		}
	}
	if k.Read(text("a", "r", "")); k.Headers("a") != nil {
		t.Error("a login without an account has a header")
	}
}

// TestKeep: only a finished login is kept, in a directory of this user alone, and one that is removed leaves nothing.
func TestKeep(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	h := login.Named(state, "codex")
	if login.Named(state, "claude") != nil || h.Held() {
		t.Error("there is a login")
	}
	dir, remove, err := h.New()
	testkit.Must(t, err)
	if err := h.Keep(t.Context(), dir, nil); err == nil || !strings.Contains(err.Error(), "codex has left no login") || h.Held() {
		t.Errorf("no login is kept: %v", err)
	}
	if had, err := h.Forget(t.Context()); had || err != nil {
		t.Errorf("no login is removed: %t, %v", had, err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Errorf("the home of a login that is being made: %v", err)
	}
	left := filepath.Join(filepath.Dir(dir), "codex-left")
	testkit.Must(t, os.Mkdir(left, 0o700))
	if _, err := h.Forget(t.Context()); err != nil {
		t.Error(err)
	}
	testkit.Must(t, remove())
	if _, err := os.Stat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a home that an interrupted login has left is still there: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a home that was removed is still there: %v", err)
	}
	if argv, env := h.Command(dir, []string{"--device-auth"}); argv[1] != "login" || argv[len(argv)-1] != "--device-auth" || env["CODEX_HOME"] != dir || filepath.Dir(dir) != filepath.Join(state, "logins") {
		t.Errorf("%q with %v in %s", argv, env, dir)
	}
}

// TestRenewing: a request that finds a part of the file, which the host is writing, waits for the end of the renewal, and one that has
// waited for long enough is told to come again. So is one that waits for its turn. The host has longer than requests wait.
func TestRenewing(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	h := login.Named(state, "codex")
	made := filepath.Join(t.TempDir(), "auth.json")
	whole := []byte(`{"tokens":{"access_token":"a","refresh_token":"r"}}`)
	testkit.Must(t, os.WriteFile(made, whole, 0o600))
	testkit.Must(t, h.Keep(t.Context(), filepath.Dir(made), map[string]string{}))
	var deadline time.Time
	k := login.NewKeeper(h, func(ctx context.Context, _ host.Command) (*host.Process, error) {
		deadline, _ = ctx.Deadline()
		return nil, errors.New("not started")
	}, slog.New(slog.DiscardHandler))
	auth := filepath.Join(state, "logins", "codex", "auth.json")
	renewal := testkit.Value(os.OpenFile(filepath.Join(state, "logins", "codex.lock"), os.O_RDWR, 0))(t)
	testkit.Must(t, lockfile.Take(renewal))
	testkit.Must(t, os.WriteFile(auth, whole[:20], 0o600))
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	again := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), "send the request again") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := k.Secret(impatient)
	again("a part of the file", err)
	var all sync.WaitGroup
	all.Go(func() {
		if secret, err := k.Secret(t.Context()); secret != "a" || err != nil {
			t.Errorf("a request that waits: %q, %v", secret, err)
		}
	})
	testkit.Must(t, os.WriteFile(auth, whole, 0o600))
	testkit.Must(t, lockfile.Release(renewal))
	all.Wait()

	testkit.Must(t, os.WriteFile(auth, whole[:20], 0o600))
	if _, err := k.Secret(t.Context()); err == nil || !strings.Contains(err.Error(), "holds no login codex") {
		t.Errorf("a part of the file, without a renewal: %v", err)
	}
	testkit.Must(t, os.WriteFile(auth, whole, 0o600))
	if err := k.Answered("a", http.StatusUnauthorized, nil); err == nil {
		t.Error("the access token is not refused")
	}
	k.Turn <- struct{}{}
	_, err = k.Secret(impatient)
	again("another request renews the login", err)
	<-k.Turn
	if _, err := k.Secret(t.Context()); err == nil || time.Until(deadline) < 2*oauth.RenewalTime {
		t.Errorf("the host has until %s: %v", deadline, err)
	}
}
