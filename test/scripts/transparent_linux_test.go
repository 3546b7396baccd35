package scripts_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestTransparent runs command lines as they are and with pwos run before the program, which $RUN stands for: standard output and
// error, the exit status and the files are the same, byte for byte.
func TestTransparent(t *testing.T) {
	t.Parallel()
	if !confines() {
		t.Skip("agents are confined and recognised only on Linux")
	}
	p := settle(t)
	lines := []string{
		`head -c 50000000 /dev/zero | $RUN cat | sha256sum`,
		`seq 100000 | $RUN cat | tail -n 1`,
		`$RUN seq 100000 | head -n 1`,
		`$RUN yes | head -n 1; echo ${PIPESTATUS[*]}`,
		`yes | $RUN head -n 1; echo ${PIPESTATUS[*]}`,
		"$RUN cat <<END\none\ntwo\nEND",
		`echo "<$($RUN printf 'a\nb\n\n')>"`,
		`seq 6 | xargs -n 2 $RUN echo`,
		`printf '1\n2\n' | xargs -P 2 -n 1 $RUN sh -c 'exit $0'; echo $?`,
		`printf '1\n2\n' | xargs -n 1 $RUN sh -c 'kill -TERM $$' 2>&1 | sed 's/.*: //'; echo ${PIPESTATUS[*]}`,
		`$RUN sh -c 'echo out; echo err >&2; exit 4'; echo $?`,
		`$RUN sh -c 'echo err >&2' 2>&1 >/dev/null | cat`,
		`seq 9 >in; $RUN tr 1 x <in >out; cat out`,
		`echo first >log; $RUN echo second >>log; cat log`,
		`$RUN cp 2>&1; printf '#!/bin/sh\necho $0\n' >x; chmod +x x; $RUN ./x; mkdir d; cd d; $RUN ../x`,
		`touch f; $RUN ./f 2>/dev/null; echo $?; $RUN ./ 2>/dev/null; echo $?; $RUN ./g 2>/dev/null; echo $?`,
		`git config --global init.defaultBranch trunk; $RUN git config --get init.defaultbranch`,
		`SHELL=/bin/x $RUN sh -c 'echo $SHELL'; export SHELL=/bin/y; $RUN sh -c 'echo $SHELL'`,
		`$RUN python3 -c 'import socket; a=socket.socket(socket.AF_UNIX); a.bind("s"); a.close(); socket.socket(socket.AF_UNIX).connect("s")' 2>&1 | tail -n 1`,
		`(read a; $RUN head -n 1; echo rest) <<<$'1\n2\n3'`,
		`exec 5<in 2>/dev/null; $RUN cat <&5; echo $?`,
		`$RUN cat </dev/null; $RUN sh -c 'echo x' >/dev/null; echo $?`,
		`echo x | $RUN tee /dev/full >/dev/null 2>&1; echo $?`,
		`$RUN echo x >/dev/full 2>&1; echo $?`,
		`mkfifo f; echo through >f & $RUN cat <f; wait`,
		`mkfifo f; cat f & $RUN echo through >f; wait`,
		`$RUN sh -c 'exec >&-; exec sleep 0.3' | cat; echo ended`,
		`$RUN head -c 10 /dev/zero | od -c`,
		`if $RUN false; then echo yes; else echo no; fi`,
		`$RUN sh -c 'trap "echo got; exit 5" TERM; echo ready; while :; do sleep 0.05; done' >out & p=$!; until grep -qs ready out; do sleep 0.05; done; kill -TERM $p; wait $p; echo $?; cat out`,
		`$RUN sh -c 'trap "echo got; exit 6" USR1; echo ready; while :; do sleep 0.05; done' >out & p=$!; until grep -qs ready out; do sleep 0.05; done; kill -USR1 $p; wait $p; echo $?; cat out`,
		`$RUN sh -c 'trap "echo got; exit 7" HUP; echo ready; while :; do sleep 0.05; done' >out & p=$!; until grep -qs ready out; do sleep 0.05; done; kill -HUP $p; wait $p; echo $?; cat out`,
		`$RUN sh -c 'trap "" TERM; echo ready; sleep 1; echo unmoved' >out & p=$!; until grep -qs ready out; do sleep 0.05; done; kill -TERM $p; wait $p; echo $?; cat out`,
		`$RUN sh -c 'echo ready; exec sleep 1000' >out & p=$!; until grep -qs ready out; do sleep 0.05; done; kill -QUIT $p; kill -TERM $p; wait $p 2>/dev/null; cat out`,
		`printf 'all:\n\t@$(RUN) echo made\n\t@$(RUN) sh -c "exit 3"\n' >Makefile; RUN="$RUN" make --no-print-directory 2>&1 | sed 's/^make: //'`,
		`nohup $RUN sh -c 'echo kept' 2>/dev/null | cat`,
		`timeout 1 $RUN sleep 1000; echo $?`,
		`for i in 1 2 3; do $RUN sh -c 'kill -INT $$'; echo $i $?; done`,
		`set -o pipefail; echo x | $RUN sh -c 'cat; exit 9' | cat; echo $?`,
		`python3 -c 'import socket,subprocess,sys; a,b=socket.socketpair(); a.send(b"ping"); a.shutdown(1); sys.stdout.flush(); print(subprocess.run(sys.argv[1].split()+["cat"],stdin=b,stdout=b).returncode, a.recv(9))' "$RUN "`,
	}
	// Files have the modes that they would have.
	lines = append(
		lines,
		`umask 027; $RUN sh -c 'umask; echo x >made; mkdir d; install -m 4 in copy'; stat -c '%a %U %n' made d copy`,
		`umask 0; $RUN sh -c 'umask; echo x >made; mkdir d'; stat -c '%a %n' made d; umask`,
		`mkdir d; chmod g+s d; $RUN sh -c 'mkdir d/e d/f; chmod g+s d/f; git init -q --bare --shared repo; install -m 2755 -d i'; stat -c '%a %n' d d/e i repo`,
	)
	// Programs that open pseudo-terminals.
	lines = append(
		lines,
		`$RUN python3 -c 'import pty,os,sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(["sh", "-c", "test -t 0 && tty | tr -d 0-9; exit 3"])))' </dev/null; echo $?`,
		`$RUN script -qec 'test -t 1 && echo "$(tty | tr -d 0-9)"; exit 4' /dev/null </dev/null; echo $?`,
		`$RUN expect -c 'spawn -noecho sh -c "read -r line; echo got \$line; exit 6"; send "typed\r"; expect "got typed"; expect eof; exit [lindex [wait] 3]' </dev/null; echo $?`,
		`$RUN sh -c 'tmux -f /dev/null -L t new-session -d "tty | tr -d 0-9 >making; mv making said"; until test -e said; do sleep 0.05; done; cat said' </dev/null`,
	)
	for _, code := range []int{0, 1, 2, 6, 9, 77, 126, 127, 128, 130, 255} {
		lines = append(lines, fmt.Sprintf(`$RUN sh -c 'exit %d'`, code))
	}
	for _, signal := range []string{"TERM", "KILL", "INT", "HUP", "QUIT", "USR1", "SEGV", "ABRT", "PIPE", "ALRM"} {
		lines = append(lines, fmt.Sprintf(`$RUN sh -c 'kill -%s $$'`, signal))
	}
	for i, line := range lines {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			outside, inside := transparent(t, p, line, ""), transparent(t, p, line, "pwos run --")
			if outside != inside {
				t.Errorf("%s\noutside: %s\ninside:  %s", line, outside, inside)
			}
		})
	}
	t.Cleanup(func() { testkit.Must(t, p.kill()) })
}

// transparent runs a line with bash, and returns what can be seen of that.
func transparent(t *testing.T, p place, line, run string) string {
	t.Helper()
	dir := t.TempDir()
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "in"), []byte("1\n2\n3\n"), 0o600))
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = append(p.env(), "RUN="+run), dir, &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatal(err)
	}
	said := stderr.Bytes()
	if run != "" { // bash prints the line of a job that a signal ended
		said = bytes.ReplaceAll(said, []byte(run+" "), nil)
	}
	out := fmt.Sprintf("%v, stdout %q, stderr %q", cmd.ProcessState, shortly(stdout.Bytes()), shortly(said))
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	for _, e := range entries {
		info, err := e.Info()
		testkit.Must(t, err)
		out += fmt.Sprintf(", %s %s", info.Mode(), e.Name())
		if e.Type().IsRegular() {
			out += fmt.Sprintf(" %q", shortly([]byte(testkit.ReadFile(t, filepath.Join(dir, e.Name())))))
		}
	}
	return out
}

// shortly returns a text, or the digest of a long one.
func shortly(text []byte) string {
	if len(text) > 4096 {
		return fmt.Sprintf("%d bytes, %x", len(text), sha256.Sum256(text))
	}
	return string(text)
}
