package scripts_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestSign: with sign=true git inside signs as its user, with the user's ssh-agent and nothing else of it; without, there is no ssh-agent.
func TestSign(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"ssh-agent", "ssh-add", "ssh-keygen"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("there is no " + tool)
		}
	}
	p, dir := withGit(t), t.TempDir()
	before := `set -e; trap 'kill $SSH_AGENT_PID' EXIT; eval $(ssh-agent) >/dev/null; mkdir -p ~/.ssh; chmod 700 ~/.ssh
ssh-keygen -q -t ed25519 -N '' -C ann -f ~/.ssh/key </dev/null; ssh-add -q ~/.ssh/key; rm -f allowed
git config --global gpg.format ssh; git config --global user.signingkey '~/.ssh/key'; git config --global commit.gpgsign true
echo "ann@example.com $(cat ~/.ssh/key.pub)" >allowed; git config --global gpg.ssh.allowedSignersFile $PWD/allowed
git init -q -b main p; cd p; git -c commit.gpgsign=false commit -q --allow-empty -m one; RUN='pwos run --set sign=true --'
`
	out, status := bash(t, p, dir, before+`
echo signed; $RUN git commit -q --allow-empty -m two; git verify-commit HEAD 2>&1 | grep -o 'Good "git" signature for ann@example.com'
git log -1 --format='%G? %s'; git config --global user.signingkey "key::$(cat ~/.ssh/key.pub)"; $RUN git tag -s v1 -m v1; git verify-tag v1 2>&1 | grep -o Good
echo keys; $RUN sh -c 'ssh-add -l | wc -l; ssh-add -D 2>&1; ssh-add -L | cut -d" " -f1'; ssh-add -l | wc -l
echo another use; $RUN sh -c 'ssh-add -L >k.pub; echo x | ssh-keygen -Y sign -n git -f k.pub 2>/dev/null | head -1; echo x | ssh-keygen -Y sign -n file -f k.pub 2>&1 | tail -1; ls ~/.ssh $(dirname '$SSH_AUTH_SOCK') 2>&1 | grep -c "No such file\|denied"'
echo strict; $RUN sh -c 'git commit -q --allow-empty -m three'; pwos run --sandbox strict --set sign=true --read $(dirname $PWD)/allowed -- git commit -q --allow-empty -m four; git log -2 --format=%G?
echo without; pwos run -- sh -c 'echo "${SSH_AUTH_SOCK-none}"; SSH_AUTH_SOCK='$SSH_AUTH_SOCK' ssh-add -l 2>&1 | grep -c ann; git commit -q --allow-empty -m five; git log -1 --format=%G?'
`)
	want := `signed
Good "git" signature for ann@example.com
G two
Good
keys
1
Failed to remove all identities.
ssh-ed25519
1
another use
-----BEGIN SSH SIGNATURE-----
Signing (stdin) failed: agent refused operation
2
strict
G
G
without
none
0
N
`
	if out = strings.ReplaceAll(out, "\r", ""); out != want || status != 0 {
		t.Errorf("%d %s", status, out)
	}
	for name, one := range map[string]struct{ line, want string }{
		"none":     {`unset SSH_AUTH_SOCK`, "SSH_AUTH_SOCK is not set"},
		"gone":     {`SSH_AUTH_SOCK=/none`, "SSH_AUTH_SOCK, /none, is no socket"},
		"gpg":      {`git config --global gpg.format openpgp`, `the gpg.format of your git is "openpgp": keys of GnuPG stay out of reach`},
		"no key":   {`git config --global --unset user.signingkey`, "sign=true needs the key that git signs with"},
		"no file":  {`git config --global user.signingkey /none/x`, "open /none/x.pub: no such file"},
		"bad file": {`echo 'root:x:0:0 "' >bad.pub; git config --global user.signingkey $PWD/bad`, "bad.pub, the public key of user.signingkey, is none of ssh"},
	} {
		t.Run(name, func(t *testing.T) {
			p, dir := withGit(t), t.TempDir()
			out, status := bash(t, p, dir, before+one.line+"; $RUN true")
			if status != 2 || !strings.Contains(out, one.want) {
				t.Errorf("%d %s", status, out)
			}
		})
	}
}

// TestSignRefused: only the operator names an ssh-agent.
func TestSignRefused(t *testing.T) {
	t.Parallel()
	p := settle(t)
	for data, want := range map[string]string{
		`{"child_agent_id":"x","command":["true"],"sign":"agent.sock"}`:                                   "must be an absolute path",
		`{"child_agent_id":"x","sign":"/agent.sock"}`:                                                     "name one with command",
		`{"child_agent_id":"x","command":["true"],"sign":"/a","pid":` + spawned(t, p, "agent", "*") + `}`: "may not name an ssh-agent: only the operator may",
	} {
		_, says, status := p.pwosWith(t, nil, "call", "Syscall.Spawn", "--data", data)
		if status == 0 || !strings.Contains(says, want) {
			t.Errorf("%s: %d, %s", data, status, says)
		}
	}
	testkit.Must(t, p.kill())
}
