package scripts_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// speak is the start of an agent in shell: `call KIND TYPE DATA` makes a call, prints its answer to stderr, and fails if
// that is an error.
const speak = `
call() {
	printf '{"kind":"%s","type":"%s","data":%s,"metadata":{"id":"m","timestamp":0}}\n' "$1" "$2" "$3"
	read -r answer || exit 9
	printf '%s\n' "$answer" >&2
	case $answer in *'"kind":"error"'*) return 1 ;; esac
}
read -r hello
printf '{"kind":"reply","type":"Syscall.Authenticate","data":null}\n'
`

// lesson is a place where programs run with the grants that were learned from them.
type lesson struct {
	place
	work, examples string
}

// school creates a lesson with this configuration.
func school(t *testing.T, config string) lesson {
	t.Helper()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	l := lesson{place: settle(t), work: t.TempDir()}
	t.Cleanup(func() { testkit.Must(t, l.place.kill()) })
	dir := filepath.Join(l.Dir, "home", ".config", "pwos")
	testkit.Must(t, os.MkdirAll(dir, 0o700))
	var err error
	l.examples, err = examplesDir()
	testkit.Must(t, err)
	if !strings.Contains(config, "[agents]\n") {
		config += "[agents]\n"
	}
	read := fmt.Sprintf("[agents]\nread = [%q, %q]\n", l.work, l.examples) // scripts below /tmp are hidden otherwise
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "config.toml"), []byte(strings.Replace(config, "[agents]\n", read, 1)), 0o600))
	return l
}

// write writes a script, and returns its path.
func (l lesson) write(t *testing.T, name, script string) string {
	t.Helper()
	path := filepath.Join(l.work, name)
	testkit.Must(t, os.WriteFile(path, []byte(script), 0o600))
	return path
}

// outcome is the outcome of an agent's run.
type outcome struct {
	stdout, said string
	status       int
	calls        string // "4 calls"
	refused      string // "1 refused"
}

// run runs a command line, and meanwhile concurrently if it is not nil.
func (l lesson) run(t *testing.T, line string, meanwhile func()) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	line = strings.Replace(line, "pwos ", "pwos --timeout="+testkit.Patience.String()+" ", 1)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", line)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = l.env(), l.work, &stdout, &stderr
	testkit.Must(t, cmd.Start())
	if meanwhile != nil {
		meanwhile()
	}
	if err := cmd.Wait(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	o := outcome{stdout: stdout.String(), said: stderr.String(), status: statusOf(cmd.ProcessState), refused: "0 refused"} // which is not said
	end := regexp.MustCompile(`(?m)^pwos: pid [0-9]+ \(.*\) .* after ([0-9]+ calls?), ([0-9]+ refused): pwos audit log --pid [0-9]+$`)
	if end := end.FindStringSubmatch(o.said); end != nil {
		o.calls, o.refused = end[1], end[2]
	}
	return o
}

// learn runs a program with --learn, then the line that this prints, and compares the second run with the first: it must
// end too, with no more refusals. It returns the line. If meanwhile kills the program, its status depends only on whether
// the signal or the error of the call in flight reached it first.
func (l lesson) learn(t *testing.T, flags string, program string, meanwhile func(again bool)) string {
	t.Helper()
	beside := func(again bool) func() {
		if meanwhile == nil {
			return nil
		}
		return func() { meanwhile(again) }
	}
	first := l.run(t, "pwos run --channel stdio --learn "+flags+" -- "+program, beside(false))
	var report struct{ Line string }
	if err := json.Unmarshal([]byte(first.stdout), &report); err != nil {
		t.Fatalf("%s: it learned %q: %v\n%s", program, first.stdout, err, first.said)
	}
	second := l.run(t, report.Line, beside(true))
	if second.refused != first.refused || meanwhile == nil && (second.status != first.status || second.calls != first.calls) {
		t.Errorf("%s\nended with %d after %s, %s; learning with %d after %s, %s\n%s--- learning:\n%s", report.Line,
			second.status, second.calls, second.refused, first.status, first.calls, first.refused, second.said, first.said)
	}
	return report.Line
}

// await waits until a process of that name runs, and returns its PID.
func (l lesson) await(t *testing.T, name string) string {
	t.Helper()
	running := regexp.MustCompile(`"pid":([0-9]+),"agent_id":"` + name + `",.*"state":"RUNNING"`)
	var found []string
	testkit.Eventually(t, name+" runs", func() bool {
		found = running.FindStringSubmatch(l.pwos(t, "ps", "--json"))
		return found != nil
	})
	return found[1]
}

// The output of a run with --learn is sufficient: each example does the same with it, without refusals.
func TestLearnedExamples(t *testing.T) {
	t.Parallel()
	each := func(name string, check func(*testing.T, lesson)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, school(t, ""))
		})
	}
	each("misbehave", func(t *testing.T, l lesson) { l.learn(t, "", "sh "+l.examples+"/shell/misbehave.sh", nil) })
	each("page", func(t *testing.T, l lesson) {
		page, err := os.ReadFile(filepath.Join(l.examples, "..", "docs", "agents.md"))
		testkit.Must(t, err)
		_, block, _ := strings.Cut(string(page), "```sh\n")
		block, _, _ = strings.Cut(block, "```")
		l.learn(t, "", "sh "+l.write(t, "hello.sh", block), nil)
	})
	ping := func(t *testing.T, l lesson, pong string) {
		t.Helper()
		l.learn(t, "--name pong", pong, func(again bool) {
			pid := l.await(t, "pong")
			ping := fmt.Sprintf("sh %s/shell/ping.sh %s 3", l.examples, pid)
			if again {
				if o := l.run(t, "pwos run --channel stdio --allow Ipc.Receive,Syscall.SendMsg -- "+ping, nil); o.status != 0 {
					t.Errorf("%s: %d, %s", pong, o.status, o.said)
				}
			} else {
				l.learn(t, "", ping, nil)
			}
			l.pwos(t, "kill", pid)
		})
	}
	each("shell", func(t *testing.T, l lesson) { ping(t, l, "sh "+l.examples+"/shell/pong.sh") })
	each("go", func(t *testing.T, l lesson) { ping(t, l, program("pong")) })
	if _, err := exec.LookPath("python3"); err == nil {
		each("python", func(t *testing.T, l lesson) { ping(t, l, "python3 "+l.examples+"/python/pong.py") })
		each("supervisor", func(t *testing.T, l lesson) {
			l.learn(t, "--own-dir", "python3 "+l.examples+"/python/supervisor.py", nil)
		})
	}
}

// The same for the two agents of the demo.
func TestLearnedDemo(t *testing.T) {
	t.Parallel()
	l := school(t, "[agents]\nrestart_delay = \"10ms\"\n")
	clerk := l.learn(t, "--restart on-failure --name clerk", "sh "+l.examples+"/demo/clerk.sh", func(bool) {
		testkit.Must(t, os.RemoveAll(filepath.Join(l.work, "crashed-once")))
		pid := l.await(t, "clerk")
		// The last call of the boss should be refused, so it is not learned from.
		if o := l.run(t, "pwos run --channel stdio --allow Ipc.Receive,Syscall.SendMsg -- sh "+l.examples+"/demo/boss.sh "+pid, nil); o.status != 0 {
			t.Errorf("boss: %d, %s", o.status, o.said)
		}
		testkit.Eventually(t, "the clerk's acknowledgement, which follows its answer", func() bool {
			return strings.Contains(l.pwos(t, "audit", "log", "--json", "--pid", pid), `"type":"Ipc.Ack"`)
		})
		l.pwos(t, "kill", pid)
	})
	if want := "--allow Ipc.Ack,Ipc.Receive,Syscall.SendMsg "; !strings.Contains(clerk, want) {
		t.Errorf("learned %q, want %s", clerk, want)
	}
}

// What a program and its children need, what it grants them, what failed, and what is always refused.
func TestLearnedScripts(t *testing.T) {
	t.Parallel()
	l := school(t, "[resources]\ngpu = 8\ntokens = 1000\n")
	child := l.write(t, "child.sh", speak+`
call command Syscall.Alloc '{"resource_id":"gpu","amount":3}' || exit 1
call command Memory.Set '{"key":"child","value":1}' || exit 1
call command Syscall.SendMsg "{\"receiver_pid\":$1,\"payload\":\"done\"}" || exit 1
call command Ipc.Receive '{"wait_ms":60000,"max":1}'
`)
	parent := l.write(t, "parent.sh", speak+`
call command Syscall.Alloc '{"resource_id":"gpu","amount":2}' || exit 1
call command Syscall.Alloc '{"resource_id":"tokens","amount":300}' || exit 1
call command Syscall.Spawn "{\"child_agent_id\":\"child\",\"command\":[\"sh\",\"$1\",\"$PWOS_PID\"],\"capabilities\":{\"allowed_syscalls\":[\"Memory.*\",\"SYS_ALLOC\",\"SYS_SEND_MSG\",\"Ipc.Receive\"],\"resource_quotas\":{\"gpu\":3}}}" || exit 1
child=${answer#*'"child_pid":'}
call command Ipc.Receive '{"wait_ms":60000,"max":1}' || exit 1
case $answer in *'"done"'*) ;; *) exit 1 ;; esac
call command Capability.Grant "{\"pid\":${child%%,*},\"allowed_syscalls\":[\"Process.List\"]}" || exit 1
call command Syscall.Terminate "{\"target_pid\":${child%%,*}}" || exit 1
call command Syscall.Release '{"resource_id":"gpu","amount":1}' || exit 1
`)
	line := l.learn(t, "", "sh "+parent+" "+child, nil)
	want := "--allow 'Capability.Grant,Ipc.Receive,Memory.*,Process.List,Syscall.Alloc,Syscall.Release,Syscall.SendMsg,Syscall.Spawn,Syscall.Terminate' --quota gpu=5 --quota tokens=300 "
	if !strings.Contains(line, want) {
		t.Errorf("learned %q, want %s", line, want)
	}

	stubborn := l.write(t, "stubborn.sh", speak+`
call query Memory.Get '{"key":"nothing/here"}' && exit 1
call command Memory.CompareAndSet '{"key":"a","expected":1,"value":2}' && exit 1
call command Memory.Set '{"key":"a//b","value":2}' && exit 1
call query Crypto.Open '{"value":"pwenc:v1:none"}' && exit 1
call command Syscall.Shutdown '{}' && exit 1
call command Capability.Grant "{\"pid\":$PWOS_PID,\"allowed_syscalls\":[\"*\"]}" && exit 1
call command No.Such '{}' && exit 1
exit 4
`)
	line = l.learn(t, "", "sh "+stubborn, nil)
	if got := regexp.MustCompile(`--allow \S+`).FindString(line); !strings.HasPrefix(got, "--allow Memory.") || strings.Contains(got, "Grant") || strings.Contains(got, "Crypto") {
		t.Errorf("learned %q", line)
	}
}

// Servers: plain and with TLS, with redirects, one of which is to an address, which must be named.
func TestLearnedServers(t *testing.T) {
	t.Parallel()
	last := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("here")) }))
	t.Cleanup(last.Close)
	middle := httptest.NewServer(http.RedirectHandler(last.URL, http.StatusFound))
	t.Cleanup(middle.Close)
	named := func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
	first := httptest.NewServer(http.RedirectHandler(named(middle.URL), http.StatusFound))
	t.Cleanup(first.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: last.Certificate().Raw}), 0o600))
	l := school(t, fmt.Sprintf("[http]\nallow = [\"127.0.0.0/8\"]\nallow_hosts = [\"localhost:*\"]\nca_file = %q\n", ca))

	script := l.write(t, "fetch.sh", speak+`call command Http.Fetch "{\"url\":\"$1/secret?token=x\"}" || exit 1
case $answer in *'"body":"here"'*) ;; *) exit 1 ;; esac
call command Http.Fetch '{"url":"https://192.0.2.1/"}' && exit 1
exit 0`)
	host := strings.TrimPrefix(last.URL, "https://")
	line := l.learn(t, "--host "+host, "sh "+script+" "+named(first.URL), nil)
	hosts := []string{host, named(strings.TrimPrefix(first.URL, "http://")), named(strings.TrimPrefix(middle.URL, "http://"))}
	for _, host := range hosts {
		if !strings.Contains(line, "--host "+host+" ") {
			t.Errorf("learned %q, which lacks %s", line, host)
		}
	}
	if strings.Count(line, "--host") != len(hosts) || !strings.Contains(line, " --http-plain ") || strings.Contains(line, "--http-open") {
		t.Errorf("learned %q", line)
	}
	// The flags themselves: a host without --allow adds Http.Fetch, and what is missing is refused.
	flags := "--host " + strings.Join(hosts, " --host ")
	if o := l.run(t, "pwos run --channel stdio --http-plain "+flags+" -- sh "+script+" "+named(first.URL), nil); o.status != 0 {
		t.Errorf("%d, %s", o.status, o.said)
	}
	if o := l.run(t, "pwos run --channel stdio "+flags+" -- sh "+script+" "+named(first.URL), nil); o.status == 0 || !strings.Contains(o.said, `"code":403`) {
		t.Errorf("without --http-plain: %d, %s", o.status, o.said)
	}
}

// A learned profile: what was done succeeds with it, and other calls are refused by the rule that was written.
func TestLearnedProfile(t *testing.T) {
	t.Parallel()
	last := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("here")) }))
	t.Cleanup(last.Close)
	named := func(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }
	first := httptest.NewServer(http.RedirectHandler(named(last.URL), http.StatusFound))
	t.Cleanup(first.Close)
	l := school(t, "[http]\nallow = [\"127.0.0.0/8\"]\nallow_hosts = [\"localhost:*\"]\n[resources]\ngpu = 8\n")
	script := l.write(t, "work.sh", speak+`call command Memory.Set "{\"key\":\"$1/1\",\"value\":1}" || exit 1
call command Memory.Set '{"key":"notes/2","value":1}' || exit 1
call query Memory.Get '{"key":"/notes/1"}' || exit 1
call query Memory.List '{"prefix":"notes/"}' || exit 1
call command Syscall.Alloc '{"resource_id":"gpu","amount":2}' || exit 1
call command Http.Fetch "{\"url\":\"$2\",\"method\":\"$3\"}" || exit 1`)
	work := func(flags, args string) outcome {
		return l.run(t, "pwos run --channel stdio "+flags+" -- sh "+script+" "+args, nil)
	}
	usual := "notes " + named(first.URL) + " GET"

	o := work("--learn=mine --net none --name mine", usual)
	var report struct{ Line string }
	testkit.Must(t, json.Unmarshal([]byte(o.stdout), &report))
	if want := "pwos policy reload && pwos run --profile mine --name=mine --channel=stdio -- sh " + script + " " + usual; o.status != 0 || report.Line != want {
		t.Fatalf("%d, learned %q, want %q\n%s", o.status, report.Line, want, o.said)
	}
	if o := l.run(t, report.Line, nil); o.status != 0 || o.refused != "0 refused" {
		t.Fatalf("under what was written: %d, %s\n%s", o.status, o.refused, o.said)
	}
	dir := filepath.Join(l.Dir, "home", ".config", "pwos", "profiles")
	grant, err := os.ReadFile(filepath.Join(dir, "mine.toml"))
	testkit.Must(t, err)
	if !strings.Contains(string(grant), `net = 'none'`) || !strings.Contains(string(grant), "gpu = 2.0") {
		t.Errorf("wrote %s", grant)
	}
	for rule, args := range map[string]string{
		"mine-set":   "prod " + named(first.URL) + " GET",
		"mine-fetch": "notes " + named(first.URL) + " DELETE",
	} {
		if o := work("--profile mine --name other", args); o.status != 1 || !strings.Contains(o.said, rule) || !strings.Contains(o.said, "policy.denied") {
			t.Errorf("%s: %d, %s", args, o.status, o.said)
		}
	}
	// A host that was not seen is refused by the grant, before any rule.
	if o := work("--profile mine", "notes https://192.0.2.1/ GET"); o.status != 1 || !strings.Contains(o.said, `"code":403`) {
		t.Errorf("another host: %d, %s", o.status, o.said)
	}
	if o := work("--learn=mine", usual); o.status != 2 || !strings.Contains(o.said, "would overwrite") {
		t.Errorf("learned again: %d, %s", o.status, o.said)
	}
	if o := work("--learn=../mine", usual); o.status != 2 {
		t.Errorf("outside of the directory: %d, %s", o.status, o.said)
	}
}
