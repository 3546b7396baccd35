package login

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/promptware-os/pwos/effect/oauth"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

// Keeper gives a login to the requests of all agents, and has the host renew it, once for all that wait.
type Keeper struct {
	*oauth.Keeper
	home  *Home
	start Start

	mu     sync.Mutex
	last   *tokens
	failed string // the login whose renewal has failed
	until  time.Time
}

// Start starts the program of a host, confined.
type Start func(ctx context.Context, c host.Command) (*host.Process, error)

// nobody is the PID of the host: it belongs to no process.
const nobody = -1

// NewKeeper returns the keeper of a login.
func NewKeeper(h *Home, start Start, log *slog.Logger) *Keeper {
	k := &Keeper{home: h, start: start}
	k.Keeper = &oauth.Keeper{
		Source: k, Name: h.Name, LogIn: []string{"pwos", "login", h.Name}, Secure: true, Load: k.load,
		Store: func(context.Context, string, string) error { return nil }, // the host has
		Turn:  make(chan struct{}, 1), Now: time.Now, Note: func(text string, err error) { log.Warn(text, "login", h.Name, "error", err) },
	}
	return k
}

// Held reports whether there is a login.
func (k *Keeper) Held() bool { return k.home.Held() }

// Headers returns the headers that a request with an access token needs besides it.
func (k *Keeper) Headers(access string) map[string]string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last == nil || k.last.Access != access {
		return nil
	}
	return k.last.headers()
}

// load returns the text of the login's file. While the host renews it, the file may have a part of it: then load waits for the end of
// the renewal.
func (k *Keeper) load(ctx context.Context) (string, error) {
	text, err := read(k.home.tokens())
	if err != nil || parse(text) != nil {
		return k.checked(text, err)
	}
	ctx, cancel := context.WithTimeout(ctx, oauth.RenewalTime)
	defer cancel()
	release, err := k.home.lock(ctx)
	if err != nil {
		if ctx.Err() == nil {
			k.Note("the login cannot be locked", err)
		}
		return "", k.Renewing()
	}
	text, err = k.loadLocked()
	if failed := release(); failed != nil {
		k.Note("the login cannot be unlocked", failed)
	}
	return text, err
}

// loadLocked is load for a caller that has locked the login.
func (k *Keeper) loadLocked() (string, error) { return k.checked(read(k.home.tokens())) }

// checked returns the text of the login's file if it has a login.
func (k *Keeper) checked(text string, err error) (string, error) {
	if err == nil && parse(text) != nil {
		return text, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Note("the login cannot be read", err)
	}
	return "", fault.UpstreamNoCredential.New("the kernel holds no login %s: the operator gives it one with %s", k.Name, quote.Command(k.LogIn...))
}

// Read implements oauth.Source.
func (k *Keeper) Read(stored string) *oauth.Tokens {
	t := parse(stored)
	if t == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = t
	return &t.Tokens
}

// pause is how long after a failed renewal no other one is tried of the same login.
const pause = 20 * time.Second

// Next implements oauth.Source: it has the host renew the login.
func (k *Keeper) Next(ctx context.Context, stored string) (string, error) {
	k.mu.Lock()
	recent := k.failed == stored && k.Now().Before(k.until)
	k.mu.Unlock()
	if recent {
		return "", k.notRenewed()
	}
	next, err := k.renew(ctx, stored)
	if err == nil {
		return next, nil
	}
	k.Note("the host did not renew its login", err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed, k.until = stored, k.Now().Add(pause)
	return "", k.notRenewed()
}

func (k *Keeper) notRenewed() error {
	return fault.UpstreamLogin.New("%s did not renew its login", k.Name).WithFix("send the request again in a minute, or log in again with %s", quote.Command(k.LogIn...))
}

// hostTime bounds a renewal by the host. It is longer than requests wait for it: a host that is killed may lose the login that it has just
// got.
const hostTime = 2 * time.Minute

// renew has the host renew the login, unless that was done meanwhile.
func (k *Keeper) renew(ctx context.Context, stored string) (next string, err error) {
	release, err := k.home.lock(ctx)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	before := parse(stored)
	if next, err = k.loadLocked(); err != nil || parse(next).Access != before.Access {
		return next, err
	}
	settings, err := read(k.home.settings())
	if err != nil {
		return "", err
	}
	dir := k.home.dir()
	env := homeVariables(dir)
	for name, value := range members([]byte(settings)) {
		if text, invalid := schema.TypeOf[string]().DecodeUntrusted(value); invalid == nil {
			env[name] = *text.(*string)
		}
	}
	maps.Copy(env, homeVariables(dir))
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hostTime)
	defer cancel()
	process, err := k.start(ctx, host.Command{
		Argv: []string{k.Name, "app-server", "-c", keepsFile}, Env: env, Dir: dir, Net: host.NetOpen, ShowProgram: true, AllowGaps: true,
		Places: []host.Place{{Target: dir, Write: true}}, PID: nobody, AgentID: "login",
	})
	if err != nil {
		return "", err
	}
	defer func() {
		process.Kill()
		<-process.Done()
		err = errors.Join(err, process.Conn().Close())
	}()
	defer context.AfterFunc(ctx, process.Kill)()
	renewed := func() bool {
		text, err := k.loadLocked()
		if err != nil || parse(text).Access == before.Access {
			return false
		}
		next = text
		return true
	}
	if failed := converse(process.Conn(), renewed); !renewed() {
		return "", cmp.Or(failed, errors.New("it answered, and has the same access token as before"))
	}
	return next, nil
}

// converse speaks the host's protocol, lines of JSON-RPC: it is asked to renew the login, unless it has done so at its start, as it does
// where the access token has ended. It may answer with an error after it has done so, such as that its vendor's server is not there.
func converse(conn host.Conn, renewed func() bool) error {
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, longest)
	for _, question := range []string{
		`{"id":1,"method":"initialize","params":{"clientInfo":{"name":"pwos","version":"1"}}}`,
		`{"method":"initialized"}` + "\n" + `{"id":2,"method":"account/read","params":{"refreshToken":true}}`,
	} {
		if _, err := conn.Write([]byte(question + "\n")); err != nil {
			return fmt.Errorf("ask the host: %w", err)
		}
		for answered := false; !answered; {
			if !lines.Scan() {
				return errors.Join(errors.New("the host has ended before it answered"), lines.Err())
			}
			_, answered = members(lines.Bytes())["id"]
		}
		if renewed() {
			return nil
		}
	}
	return nil
}
