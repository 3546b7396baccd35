package hosts_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/screen"
	"github.com/promptware-os/pwos/internal/testkit"
)

// canary is the key that the kernel has. No agent may see it.
const canary = "sk-canary-6b1f"

// hosted is an agent host in `pwos run`, and the way to make it do one thing and end.
type hosted struct {
	name, upstream, header string
	once                   []string
	key                    string // as the upstream's server receives it
}

func allHosted() []hosted {
	return []hosted{
		{"claude", "anthropic", "X-Api-Key", []string{"-p", "go", "--allowedTools", "Bash"}, canary},
		{"codex", "openai", "Authorization: Bearer", []string{"exec", "-m", "x", "--skip-git-repo-check", "go"}, "Bearer " + canary},
	}
}

// configure writes the configuration of a kernel before its start. Agents can see the hosts' programs, which are in /tmp
// here.
func (p *place) configure(text string) {
	p.t.Helper()
	testkit.Must(p.t, os.WriteFile(p.Path("config.toml"), fmt.Appendf(nil, "[agents]\nread = [%q]\n%s", filepath.Dir(filepath.Dir(p.bin)), text), 0o600))
	p.env = append(p.env, "PWOS_CONFIG="+p.Path("config.toml"), "TERM=xterm")
}

// hold stores the key of a model in the kernel.
func (p *place) hold(h hosted, m *model) {
	p.t.Helper()
	p.identity()
	p.configure(fmt.Sprintf("[crypto]\nidentity = %q\n[upstream.%s]\nurl = %q\nheader = %q\nfrom = %q\nallow = [\"* /…\"]\nenv = \"ANTHROPIC_BASE_URL\"\n",
		p.Path("home/.ssh/id_ed25519"), h.upstream, m.url, h.header, "vault/"+h.upstream))
	p.run("sh", "-c", `pwos mem set vault/`+h.upstream+` "$(printf %s `+canary+` | pwos seal)"`)
}

// identity creates the user's SSH key.
func (p *place) identity() {
	p.t.Helper()
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		p.t.Skip(err)
	}
	testkit.Must(p.t, os.Mkdir(p.Path("home/.ssh"), 0o700))
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", p.Path("home/.ssh/id_ed25519")).CombinedOutput(); err != nil {
		p.t.Fatalf("%v: %s", err, out)
	}
}

// sit runs a host in a terminal.
func (p *place) sit(h hosted, allow string, args ...string) *screen.Screen {
	p.t.Helper()
	return screen.Sit(p.t, p.command(p.t.Context(), "pwos", append([]string{"run", "--tty", "--env", "SHELL", "--allow", allow, "--", h.name}, args...)...), patience/3)
}

// killKernel kills the kernel, as a fault would.
func (p *place) killKernel() {
	text, err := os.ReadFile(p.Path("r/kernel.lock"))
	testkit.Must(p.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	testkit.Must(p.t, err)
	testkit.Must(p.t, syscall.Kill(pid, syscall.SIGKILL))
}

// restored fails the test if a terminal's settings have changed.
func restored(t *testing.T, s *screen.Screen, before unix.Termios) {
	t.Helper()
	if after := s.Settings(); after != before {
		t.Errorf("the terminal's settings were %+v, and are %+v", before, after)
	}
}

// TestRun: a host in pwos run has the kernel's tools, its own tools if they are granted, and nothing else; none of its
// processes outlives the kernel.
func TestRun(t *testing.T) {
	t.Parallel()
	for _, h := range allHosted() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			testkit.Must(t, errors.Join(os.Mkdir(p.Path("home/.claude"), 0o700), os.Mkdir(p.Path("home/.codex"), 0o700)))
			for _, name := range []string{"outside", "home/.claude/.credentials.json", "home/.codex/auth.json"} {
				testkit.Must(t, os.WriteFile(p.Path(name), []byte("a secret\n"), 0o600))
			}
			set := object{"key": "a", "value": 1}
			grant := func(what string) func() {
				return func() { p.run("pwos", "cap", "grant", "1", "--add", what) }
			}
			command := func(line string, before func()) step {
				s := shell(h.name, line)
				s.before = before
				return s
			}
			granted := []string{"Memory.Get", "Tool:" + h.name + "/ToolSearch", "Tool:" + h.name + "/mcp/pwos/*", "Upstream:" + h.upstream}
			m := newModel(
				t,
				step{tool: "Memory_Set", input: set, before: func() { p.run("pwos", append([]string{"cap", "grant", "1"}, granted...)...) }},
				step{tool: "Memory_Set", input: set, before: grant("Memory.Set")},
				command("touch denied", nil),
				command("touch allowed", grant("Tool:"+h.name+"/Bash")),
				command("cat "+p.Path("outside")+" "+p.Path("home/.claude/.credentials.json")+" "+p.Path("home/.codex/auth.json")+" "+p.Path("s/host_key"), nil),
				command("cat </dev/tcp/"+strings.TrimPrefix(strings.Replace(newServer(t), ":", "/", 1), "/")+"; curl -sS --max-time 20 https://example.com/", nil),
				command(`for f in ~/.claude/settings.json ~/.codex/config.toml; do test ! -e $f || echo x >>$f; done; cat /proc/*/environ | tr '\0' '\n' | grep -a canary; grep -ra canary ~ . | head -c 300; true`, nil),
				command("touch after", p.killKernel),
			)
			p.hold(h, m)
			s := p.sit(h, strings.Join(append(granted, "Memory.Set"), ","), h.once...)
			before := s.Settings()
			s.Expect("pwos: .*the kernel closed the connection")
			if got := s.Status(); got != 6 {
				t.Errorf("exit status %d, want 6", got)
			}
			restored(t, s, before)
			m.expect("", "pwos cap grant 1 --add Memory.Set", "success", "pwos cap grant 1 --add Tool:"+h.name+"/Bash", "",
				"No such file", "refused", "Read-only file system")
			for i, result := range m.results {
				if strings.Contains(result, "a secret") || strings.Contains(result, "a server") || strings.Contains(result, canary) {
					t.Errorf("%d: %s gave %s", i, m.steps[i].tool, result)
				}
			}
			m.keyed(h.key)
			for name, want := range map[string]bool{"denied": false, "allowed": true, "after": false} {
				if _, err := os.Stat(p.Path("project/" + name)); (err == nil) != want {
					t.Errorf("%s was made: %t", name, err == nil)
				}
			}
			if got := p.run("pwos", "call", "Memory.Get", "key=a"); got != "1\n" {
				t.Errorf("memory has %q", got)
			}
			log := p.run("pwos", "audit", "log", "--pid", "1")
			for _, want := range []string{`"type":"Memory.Set"`, `"type":"Host.ToolUse"`, `"decision":"deny"`, `"type":"Net.Request"`, `may not connect to example.com:443`} {
				if !strings.Contains(log, want) {
					t.Errorf("the journal has no %s: %s", want, log)
				}
			}
			p.nobody()
		})
	}
}

// newServer starts a server on this machine, which no agent may reach, and returns HOST:PORT.
func newServer(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("a server\n"))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		testkit.Must(t, listener.Close())
		<-served
	})
	return listener.Addr().String()
}

// nobody waits until no process works in the project.
func (p *place) nobody() {
	p.t.Helper()
	for limit := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		found := ""
		dirs, err := filepath.Glob("/proc/[0-9]*/cwd")
		testkit.Must(p.t, err)
		for _, dir := range dirs {
			if at, err := os.Readlink(dir); err == nil && at == p.Path("project") {
				found = dir
			}
		}
		if found == "" {
			return
		}
		if time.Now().After(limit) {
			p.t.Fatalf("%s is left", found)
		}
	}
}

// TestRunSettings: files that an agent leaves in the project and in its home directory cannot switch off, for the next
// session, that its tools ask.
func TestRunSettings(t *testing.T) {
	t.Parallel()
	for _, h := range allHosted() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, shell(h.name, "touch denied"))
			p.hold(h, m)
			off := map[string]string{
				".claude/settings.json": `{"disableAllHooks":true,"permissions":{"allow":["Bash"]}}`, ".claude/settings.local.json": `{"disableAllHooks":true}`,
				".codex/config.toml": "[features]\nhooks = false\n[hooks.state.\"/<session-flags>/config.toml:pre_tool_use:0:0\"]\nenabled = false\n",
			}
			for _, dir := range []string{p.Path("project"), p.Path("s/homes/" + h.name)} {
				for name, text := range off {
					testkit.Must(t, errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)))
				}
			}
			s := p.sit(h, "Memory.Get,Upstream:"+h.upstream, h.once...)
			s.Expect(`pid 1 \(` + h.name + `\) exited 0`)
			m.expect("", "pwos cap grant 1 --add Tool:"+h.name+"/Bash")
			if _, err := os.Stat(p.Path("project/denied")); err == nil {
				t.Error("the denied tool was used")
			}
		})
	}
}

// TestRunLogin: a host that has logged in with a subscription, and so has its login in a file, keeps it.
func TestRunLogin(t *testing.T) {
	t.Parallel()
	const token = "login-4c3d"
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"email":"a@b.c","exp":4102444800,"https://api.openai.com/auth":{"chatgpt_plan_type":"pro","chatgpt_account_id":"acc"}}`))
	jwt := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","typ":"JWT"}`)) + "." + claims + ".c2ln"
	logins := map[string]struct {
		file string
		text object
		args func(m *model) []string
	}{
		"claude": {".claude/.credentials.json", object{"claudeAiOauth": object{
			"accessToken": token, "refreshToken": "r", "expiresAt": time.Now().Add(24 * time.Hour).UnixMilli(),
			"scopes": []string{"user:inference", "user:profile"}, "subscriptionType": "max",
		}}, func(*model) []string { return []string{"-p", "go"} }},
		"codex": {".codex/auth.json", object{
			"auth_mode": "chatgpt", "OPENAI_API_KEY": nil, "last_refresh": time.Now().UTC().Format(time.RFC3339),
			"tokens": object{"id_token": jwt, "access_token": token, "refresh_token": "r", "account_id": "acc"},
		}, func(m *model) []string {
			return []string{
				"exec", "-m", "x", "--skip-git-repo-check", "-c", "model_provider=t",
				"-c", `model_providers.t={name="t",base_url="` + m.url + `/v1",wire_api="responses",requires_openai_auth=true}`, "go",
			}
		}},
	}
	for _, h := range allHosted() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, step{tool: "Memory_Set", input: object{"key": "a", "value": 1}})
			// The model stands for the vendor's server: a granted host, in addition to an upstream.
			p.configure("[http]\nallow = [\"127.0.0.0/8\"]\n")
			login := logins[h.name]
			file := p.Path("s/homes/" + h.name + "/" + login.file)
			text, err := json.Marshal(login.text)
			testkit.Must(t, errors.Join(err, os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, text, 0o600)))
			for pid := 1; pid <= 2; pid++ {
				s := screen.Sit(t, p.command(t.Context(), "pwos", append([]string{
					"run", "--tty", "--env", "ANTHROPIC_BASE_URL=" + m.url, "--env", "NO_PROXY=", "--env", "no_proxy=",
					"--allow", "Memory.Set,Tool:" + h.name + "/*", "--host", strings.TrimPrefix(m.url, "http://"), "--http-plain", "--", h.name,
				}, login.args(m)...)...), patience/3)
				s.Expect(fmt.Sprintf(`pid %d \(%s\) exited 0`, pid, h.name))
				m.expect("", "success")
				m.keyed("Bearer " + token)
			}
			info, err := os.Stat(file)
			testkit.Must(t, err)
			if info.Mode().Perm() != 0o600 {
				t.Errorf("the login's file has the mode %s", info.Mode())
			}
		})
	}
}

// TestRunSession: a session in a repository, about which the host asks nothing that it could not keep, with input from a person, who suspends it and resizes the terminal meanwhile, and ends it with
// Ctrl-C.
func TestRunSession(t *testing.T) {
	t.Parallel()
	for _, h := range allHosted() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			m := newModel(t, shell(h.name, "touch made"))
			p.hold(h, m)
			args, prompt := "", "❯"
			if h.name == "codex" {
				args, prompt = " -m x", "›"
			}
			p.welcome(h.name)
			p.run("sh", "-c", "git init -q .")
			cmd := p.command(t.Context(), "bash", "--noprofile", "--norc", "-i")
			cmd.Env = append(cmd.Env, "PS1=ready> ")
			s := screen.Sit(t, cmd, patience/3)
			s.Expect("ready> ")
			s.Enter("stty -a >before; pwos run --tty --allow 'Tool:" + h.name + "/*,Upstream:" + h.upstream + "' -- " + h.name + args + "\r")
			s.Expect(prompt)
			s.Enter("\x1a")
			s.Expect(`Stopped(.|\r|\n)*ready> `)
			s.Resize(100, 30)
			s.Enter("stty -a >stopped; fg\r")
			s.Expect(prompt)
			s.Insist("zz", "zz")
			s.Insist("\r", "done")
			switch h.name {
			case "claude": // it needs a second Ctrl-C
				s.Enter("\x03")
				s.Expect("again")
			case "codex": // during a turn, Ctrl-C ends only the turn
				s.Expect("Worked for")
			}
			s.Enter("\x03")
			s.Expect(`pid 1 \(` + h.name + `\) exited 0(.|\r|\n)*ready> `)
			s.Enter("echo status $?; stty -a >after; exit\r")
			s.Expect(`[\r\n]status 0\r\n`)
			if got := s.Status(); got != 0 {
				t.Errorf("exit status %d", got)
			}
			if _, err := os.Stat(p.Path("project/made")); err != nil {
				t.Error(err)
			}
			settings := func(name string) string {
				text, err := os.ReadFile(p.Path("project/" + name))
				testkit.Must(t, err)
				_, rest, _ := strings.Cut(string(text), "\n") // the size
				return rest
			}
			for _, name := range []string{"stopped", "after"} {
				if got, want := settings(name), settings("before"); got != want {
					t.Errorf("the terminal's settings were %s, and %s they are %s", want, name, got)
				}
			}
		})
	}
}

// TestRunPage runs the example of a login in docs/doors.md literally, except for the server. Its last command is the first example of the
// page, which runs before with the key in the environment.
func TestRunPage(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	page, err := os.ReadFile("../../docs/doors.md")
	testkit.Must(t, err)
	_, section, _ := strings.Cut(string(page), "## Confined")
	block := func(language string) string {
		_, text, _ := strings.Cut(section, "```"+language+"\n")
		text, _, _ = strings.Cut(text, "```")
		return text
	}
	m := newModel(
		t,
		step{tool: "Memory_Set", input: object{"key": "build", "value": "green"}},
		step{tool: "Bash", input: object{"command": "ls"}},
	)
	p.configure(fmt.Sprintf("[upstream.anthropic]\nurl = %q\nheader = \"X-Api-Key\"\nfrom = \"login:anthropic\"\nallow = [\"POST /v1/…\"]\n", m.url))
	commands := strings.Split(strings.TrimSpace(strings.ReplaceAll("\n"+block("console"), "\n$ ", "\n")), "\n")
	_, first, _ := strings.Cut(string(page), "\n$ pwos claude")
	first, _, _ = strings.Cut(first, "\n")
	if len(commands) != 3 || commands[2] != "pwos claude"+first {
		t.Fatalf("the page has %q", commands)
	}
	for i, command := range append([]string{commands[2]}, commands...) {
		cmd := p.command(t.Context(), "sh", "-c", command)
		key := ""
		if i < 2 {
			key = canary
		}
		cmd.Env = append(cmd.Env, "ANTHROPIC_API_KEY="+key)
		s := screen.Sit(t, cmd, patience/3)
		if i == 0 { // at its first start
			s.Expect("your ANTHROPIC_API_KEY stays outside")
			s.Expect("keep your ANTHROPIC_API_KEY too")
			s.Enter("n")
		}
		if got := s.Status(); got != 0 {
			t.Fatalf("%s: exit status %d", command, got)
		}
		if i == 0 {
			m.expect("", "success", "")
			if held := p.run("pwos", "login"); strings.Contains(held, `"kernel"`) {
				t.Errorf("the kernel keeps what its user does not want it to: %s", held)
			}
		}
	}
	m.expect("", "success", "")
	m.keyed(canary)
}
