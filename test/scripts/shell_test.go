package scripts_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// connectEnv makes this test binary a replacement of nc for examples/login.sh, since few machines have one that passes on
// the end of input.
const connectEnv = "PWOS_TEST_CONNECT"

// connectMain copies stdin to the socket that its argument names, and its answers to stdout.
func connectMain(socket string) int {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 1
	}
	defer conn.Close()
	said := make(chan error, 1)
	go func() {
		_, err := io.Copy(conn, os.Stdin)
		said <- errors.Join(err, conn.(*net.UnixConn).CloseWrite())
	}()
	if _, err := io.Copy(os.Stdout, conn); err != nil {
		return 1
	}
	return 0
}

// A shell and OpenSSH are a complete client of the real daemon: the script in the documentation logs in, as the operator
// and as an agent, from a file and through an agent, and trusts the same kernels as pwos.
func TestShellLogsIn(t *testing.T) {
	t.Parallel()
	openSSH(t, "sh", "ssh-keygen", "ssh-agent", "ssh-add", "mkfifo", "fold", "awk", "sed")
	script, err := filepath.Abs(filepath.Join("..", "..", "examples", "login.sh"))
	testkit.Must(t, err)
	self, err := os.Executable()
	testkit.Must(t, err)
	p := settle(t)
	mine, agents, stranger := p.makeKey(t, "mine", "", "-t", "ed25519"), p.makeKey(t, "agents", "", "-t", "ecdsa"), p.makeKey(t, "stranger", "", "-t", "ed25519")
	p.authorize(t, mine)
	keys := filepath.Join(p.Dir, "home", ".config", "pwos", "authorized_keys")
	line, err := os.ReadFile(agents + ".pub")
	testkit.Must(t, err)
	file, err := os.OpenFile(keys, os.O_WRONLY|os.O_APPEND, 0)
	testkit.Must(t, err)
	_, err = file.WriteString(`allow="Memory.*" ` + string(line))
	testkit.Must(t, errors.Join(err, file.Close()))

	socket := p.Socket()
	login := func(key, input string, env ...string) (stdout, stderr string, err error) {
		cmd := exec.Command("sh", script, key, socket)
		cmd.Env = append(append(p.env(), connectEnv+"=1", "PWOS_CONNECT="+self), env...)
		cmd.Dir = p.Dir
		cmd.Stdin = strings.NewReader(input)
		var out, says bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &says
		err = cmd.Run()
		return out.String(), says.String(), err
	}
	const set = `{"kind":"command","type":"Memory.Set","data":{"key":"a","value":1},"metadata":{"id":"m1","timestamp":0}}` + "\n"
	const get = `{"kind":"query","type":"Memory.Get","data":{"key":"a"},"metadata":{"id":"m2","timestamp":0}}` + "\n"
	const advance = `{"kind":"command","type":"Clock.Advance","data":{"ticks":1},"metadata":{"id":"m3","timestamp":0}}` + "\n"

	if _, says, status := p.pwosWith(t, nil, "call", "Syscall.Echo", "message=up", "--identity", mine); status != 0 {
		t.Fatal(says)
	}
	out, says, err := login(mine, set+get+advance)
	if err != nil || says != "" || strings.Count(out, "\n") != 3 || strings.Count(out, `"kind":"reply"`) != 3 {
		t.Errorf("as the operator: %v, %s%s", err, out, says)
	}
	out, says, err = login(agents, set+advance)
	if err != nil || strings.Count(out, `"kind":"reply"`) != 1 || !strings.Contains(out, `"code":403`) {
		t.Errorf("as an agent: %v, %s%s", err, out, says)
	}
	agent := p.startAgent(t)
	p.tool(t, agent, "ssh-add", "-q", mine)
	testkit.Must(t, os.Rename(mine, mine+".hidden"))
	if out, says, err = login(mine+".pub", get, agent...); err != nil || !strings.Contains(out, `"data":1`) {
		t.Errorf("through an agent: %v, %s%s", err, out, says)
	}
	if out, says, _ = login(stranger, ""); !strings.Contains(out, `"code":401`) || strings.Count(out, "\n") != 1 {
		t.Errorf("as a stranger: %s%s", out, says)
	}

	// It signs only for the known kernel.
	other, err := os.ReadFile(stranger + ".pub")
	testkit.Must(t, err)
	fields := strings.Fields(string(other))
	known := filepath.Join(filepath.Dir(keys), "known_kernels")
	testkit.Must(t, os.WriteFile(known, []byte(fields[0]+" "+fields[1]+" "+socket+"\n"), 0o600))
	if out, says, err = login(agents, get); err == nil || out != "" || !strings.Contains(says, "another key than before, nothing was signed") {
		t.Errorf("for another kernel: %v, %s%s", err, out, says)
	}
	testkit.Must(t, os.Remove(known))
	if out, says, err = login(agents, get); err != nil || !strings.Contains(out, `"data":1`) || !strings.Contains(says, "the kernel's key is ssh-ed25519 ") {
		t.Errorf("for one that is not known: %v, %s%s", err, out, says)
	}
	p.pwosWith(t, nil, "shutdown", "--identity", mine+".hidden")
}
