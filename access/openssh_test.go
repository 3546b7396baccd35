package access_test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/agent"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// accepted are the vectors whose keys are accepted.
var accepted = []string{"ed25519", "ecdsa256", "ecdsa384", "rsa3072"}

// TestRealAgent: each key type logs in through OpenSSH's agent; a sealing key seals the same
// through the agent as from a file.
func TestRealAgent(t *testing.T) {
	t.Parallel()
	socket, _ := realAgent(t, append([]string{"dsa", "ecdsa521", "rsa2048"}, accepted...)...)
	all := must((&access.Identities{AgentSocket: socket}).Find(t.Context()))(t)
	if len(all.Signers) != len(accepted) {
		t.Errorf("%d of the agent's keys are used", len(all.Signers))
	}
	for _, name := range accepted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, name)
			path := keyFile(t, name)
			w.login.Identities = &access.Identities{AgentSocket: socket, Identity: path + ".pub"}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			c := w.challenge(t)
			answer := w.answer(t, c)
			if must(c.Verify(answer.Data))(t); answer.From != "ssh-agent" {
				t.Errorf("signed by %s", answer.From)
			}
			if name != "ed25519" && name != "rsa3072" {
				return
			}
			found := must(w.login.Identities.Find(t.Context()))(t)
			s := must(access.Enroll(t.Context(), found.Signers[0]))(t)
			text := must(enrolled(t, name).Seal(t.Context(), []byte("swordfish"), nil))(t)
			if plaintext, _, err := s.Open(t.Context(), text); err != nil || string(plaintext) != "swordfish" {
				t.Errorf("sealed from the file it opens through the agent as %q, %v", plaintext, err)
			}
		})
	}
}

// TestRealAgentRefuses: the agent is locked before or after it lists its keys, or its user does not
// confirm.
func TestRealAgentRefuses(t *testing.T) {
	t.Parallel()
	socket, add := realAgent(t, "ed25519")
	lock := func(do func(agent.ExtendedAgent) error) {
		conn := must(net.Dial("unix", socket))(t)
		if err := do(agent.NewClient(struct{ *net.UnixConn }{conn.(*net.UnixConn)})); err != nil {
			t.Fatal(err)
		}
		must(0, conn.Close())(t)
	}
	i := &access.Identities{AgentSocket: socket}
	signer := must(i.Find(t.Context()))(t).Signers[0]
	lock(func(a agent.ExtendedAgent) error { return a.Lock([]byte("x")) })
	_, err := i.Find(t.Context())
	refused(t, err, fault.AuthNoIdentity)
	_, err = signer.Sign(t.Context(), access.Namespace, []byte("x"))
	refused(t, err, fault.AuthAgentNo)
	lock(func(a agent.ExtendedAgent) error { return a.Unlock([]byte("x")) })
	must(signer.Sign(t.Context(), access.Namespace, []byte("x")))(t)

	add("", "-q", "-D")
	add("", "-q", "-c", keyFile(t, "ed25519")) // each use needs a confirmation, which is refused
	_, err = signer.Sign(t.Context(), access.Namespace, []byte("x"))
	refused(t, err, fault.AuthAgentNo)
}

// TestOpenSSHReadsOurs: ssh-keygen verifies what we sign, and we verify what it signs.
func TestOpenSSHReadsOurs(t *testing.T) {
	t.Parallel()
	openSSH(t, "ssh-keygen")
	text := must(vectorBinding(t).Text(access.Client))(t)
	for _, name := range accepted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := keyFile(t, name)
			dir := filepath.Dir(path)
			signature, allowed := filepath.Join(dir, "ours.sig"), filepath.Join(dir, "allowed")
			write(t, signature, armorOf(t, identity(t, path), access.Namespace, text))
			write(t, allowed, "me "+vector(t, name+".pub"))
			verify := exec.Command("ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "me", "-n", access.Namespace, "-s", signature)
			verify.Stdin = bytes.NewReader(text)
			if out, err := verify.CombinedOutput(); err != nil {
				t.Errorf("ssh-keygen refuses our signature: %v\n%s", err, out)
			}
			sign := exec.Command("ssh-keygen", "-Y", "sign", "-f", path, "-n", access.Namespace)
			sign.Stdin = bytes.NewReader(text)
			theirs := must(sign.Output())(t)
			if err := must(access.ParseArmored(string(theirs)))(t).Verify(access.Namespace, text, false); err != nil {
				t.Errorf("we refuse ssh-keygen's signature: %v", err)
			}
		})
	}
}

// runScript answers a prologue of the world with examples/sign.sh. It returns the answer's data, or
// the script's error text.
func runScript(t testing.TB, c *access.Challenge, dialect schema.Dialect, env []string, args ...string) (data []byte, says string) {
	t.Helper()
	frame := schema.AppendMessage(nil, &schema.Message{
		Dialect: dialect, Kind: schema.KindCommand, Type: "Syscall.Authenticate", Data: c.Data(),
		Meta: schema.Metadata{Present: true, ID: "0197-fresh", Timestamp: c.Issued().UnixMilli()},
	})
	cmd := exec.Command("sh", append([]string{filepath.Join("..", "examples", "sign.sh")}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = bytes.NewReader(frame)
	var errors bytes.Buffer
	cmd.Stderr = &errors
	reply, err := cmd.Output()
	if err != nil {
		return nil, errors.String()
	}
	m, fault := schema.Decode(bytes.TrimSuffix(reply, []byte("\n")), schema.OsMessage)
	if fault != nil || m.Kind != schema.KindReply || m.Type != "Syscall.Authenticate" {
		t.Fatalf("the script printed %s: %v", reply, fault)
	}
	return m.Data, errors.String()
}

// TestShellClient: a shell and OpenSSH are a complete client, with each key type, from a file and
// through the agent; it pins the kernel as the package does.
func TestShellClient(t *testing.T) {
	t.Parallel()
	openSSH(t, "ssh-keygen", "sh", "fold", "awk", "sed")
	me := os.Getuid() // the script uses id -u
	const other = "4321"
	for _, name := range accepted {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, name)
			w.verifier.Now = time.Now // the script's clock
			path := keyFile(t, name)
			challenge := func() *access.Challenge {
				return must(w.verifier.Challenge(t.Context(), access.Local{Socket: socket, PID: pid, UID: me}))(t)
			}
			c := challenge()
			data, says := runScript(t, c, schema.OsMessage, nil, path, socket, other)
			if !strings.Contains(says, w.host.Key().String()) {
				t.Errorf("the script does not name the kernel that it trusts: %s", says)
			}
			must(c.Verify(data))(t)

			c = challenge()
			data, _ = runScript(t, c, schema.OsEvent, nil, path, socket, other, w.host.Key().String())
			must(c.Verify(data))(t)

			agentSocket, _ := realAgent(t, name)
			c = challenge()
			data, says = runScript(t, c, schema.OsMessage, []string{"SSH_AUTH_SOCK=" + agentSocket}, path+".pub", socket, other)
			if data == nil {
				t.Fatalf("through the agent: %s", says)
			}
			must(c.Verify(data))(t)
		})
	}
	w := newWorld(t, "ed25519")
	w.verifier.Now = time.Now
	path := keyFile(t, "ed25519")
	old := newWorld(t, "ed25519")
	if data, says := runScript(t, old.challenge(t), schema.OsMessage, nil, path, socket, other); data != nil || !strings.Contains(says, "another time") {
		t.Errorf("a recorded prologue: it answered %s, and printed %s", data, says)
	}
	for name, args := range map[string][]string{
		"a changed host key": {path, socket, other, vectorKey(t, "ecdsa256").String()},
		"a relay's socket":   {path, "/tmp/relay.sock", other},
		"a relay's process":  {path, socket, "1"},
	} {
		c := must(w.verifier.Challenge(t.Context(), access.Local{Socket: socket, PID: pid, UID: me}))(t)
		if data, says := runScript(t, c, schema.OsMessage, nil, args...); data != nil || !strings.Contains(says, "nothing was signed") {
			t.Errorf("%s: it answered %s, and printed %s", name, data, says)
		}
	}
}
