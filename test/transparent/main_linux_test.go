// Package transparent_test compares programs in `pwos run` with the same ones outside of it.
package transparent_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

// situation is a line of bash, in which "RUN " stands for nothing, and for "pwos run -- ".
type situation struct {
	line    string
	needs   string // programs that not every machine has
	slow    bool   // only with PWOS_LONG=1
	differs string // the row of the table in docs/agents.md that says why this is not the same inside
	only    string // the person for whom it differs; all, if empty
	how     string // a regular expression for the lines of difference()
}

// allowed are the differences that may be; docs/agents.md has a row for each. Without its line here, no situation differs for it.
var allowed = []string{
	"processes",
	"environment",
	"files",
	"descriptors",
	"limits",
	"privileges",
	"network",
	"git",
	"start",
}

// same are what differs between any two runs, and what stands for it in both.
var same = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`pwos run -- `), ""},                                   // bash names a job by its line
	{regexp.MustCompile(`bash: line (\d+): +\d+ `), "bash: line $1: PID "},     // and by its process
	{regexp.MustCompile(`/tmp/(tmp\.|tmp|\.)?[A-Za-z0-9_]{6,10}\b`), "/tmp/X"}, // mktemp
	{regexp.MustCompile(`\b\d+(\.\d+)? ?m?s\b`), "TIME"},                       // curl, go test, cargo
}

// person is a user with a home directory, whose first `pwos run` starts a kernel.
type person struct {
	name string
	bin  string // where pwos is
	dir  string
	as   *syscall.SysProcAttr // nil for the test's own user
}

// people returns root and another user, if the test is root's, else the test's user.
func people(t *testing.T) []*person {
	t.Helper()
	list := []*person{{name: "user"}}
	if os.Getuid() == 0 {
		list = []*person{{name: "root"}, {name: "user", as: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}}}
	}
	for _, p := range list {
		dir, err := os.MkdirTemp(testkit.DiskTempDir(), "pw") // a home directory is on a disk
		testkit.Must(t, err)
		p.dir = dir
		testkit.Must(t, errors.Join(os.Mkdir(p.path("home"), 0o755), os.Mkdir(p.path("run"), 0o700), os.WriteFile(p.path("home/.gitconfig"), []byte(gitconfig), 0o644)))
		if p.as != nil {
			for _, name := range []string{".", "home", "run", "home/.gitconfig"} {
				testkit.Must(t, os.Chown(p.path(name), 1000, 1000))
			}
		}
		t.Cleanup(func() {
			if out, err := p.command(context.Background(), "pwos shutdown").CombinedOutput(); err != nil {
				t.Errorf("pwos shutdown: %v: %s", err, out)
			}
			testkit.Must(t, os.RemoveAll(dir))
		})
	}
	return list
}

const gitconfig = "[user]\n\tname = A U Thor\n\temail = author@example.com\n[init]\n\tdefaultBranch = trunk\n"

func (p *person) path(name string) string { return filepath.Join(p.dir, name) }

// command returns a line of bash as this person types it, with the variables that a login sets.
func (p *person) command(ctx context.Context, line string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "bash", "-c", line)
	cmd.SysProcAttr, cmd.Dir = p.as, p.path("home")
	cmd.Env = []string{
		"HOME=" + p.path("home"), "XDG_RUNTIME_DIR=" + p.path("run"), "PATH=" + p.bin + ":" + os.Getenv("PATH"),
		"TERM=xterm", "LANG=C.UTF-8", "SHELL=/bin/bash", "USER=" + p.name, "LOGNAME=" + p.name,
	}
	if home, err := os.UserHomeDir(); err == nil && p.as == nil { // where the programs of rustup in PATH look for compilers
		cmd.Env = append(cmd.Env, "RUSTUP_HOME="+cmp.Or(os.Getenv("RUSTUP_HOME"), filepath.Join(home, ".rustup")))
	}
	if mark, ok := os.LookupEnv("PWOS_CI_MARK"); ok { // by which .ci/run recognizes the processes of a step
		cmd.Env = append(cmd.Env, "PWOS_CI_MARK="+mark)
	}
	return cmd
}

// see runs a line in a new directory, and returns what can be seen of it. The directory has the same path each time.
func (p *person) see(t *testing.T, dir, line string) seen {
	t.Helper()
	testkit.Must(t, os.Mkdir(dir, 0o755))
	if p.as != nil {
		testkit.Must(t, os.Chown(dir, 1000, 1000))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Patience)
	defer cancel()
	cmd := p.command(ctx, line)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	if err := cmd.Run(); err != nil && !errors.As(err, new(*exec.ExitError)) {
		t.Fatalf("%s: %v", line, err)
	}
	s := seen{stdout: normal(stdout.Bytes()), rest: fmt.Sprintf("%v\nstderr:\n%s", cmd.ProcessState, normal(stderr.Bytes())), files: files(t, dir)}
	testkit.Must(t, os.RemoveAll(dir))
	return s
}

// seen is what can be seen of a line: its output, its end and error output, and its files.
type seen struct{ stdout, rest, files string }

func (s seen) String() string { return s.rest + "stdout:\n" + s.stdout + "files:\n" + s.files }

// normal returns a text, or the digest of a long one, without what differs between any two runs.
func normal(text []byte) string {
	for _, s := range same {
		text = s.what.ReplaceAll(text, []byte(s.as))
	}
	if len(text) > 8192 {
		return fmt.Sprintf("%d bytes, %x\n", len(text), sha256.Sum256(text))
	}
	return string(text)
}

// files returns a list of the files in a directory: mode, owner, links, and target or content.
func files(t *testing.T, dir string) string {
	t.Helper()
	var list strings.Builder
	testkit.Must(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var stat unix.Stat_t
		if err := unix.Lstat(path, &stat); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		fmt.Fprintf(&list, "%06o %d:%d %s", stat.Mode, stat.Uid, stat.Gid, normal([]byte(rel)))
		switch {
		case entry.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&list, " -> %s", target)
		case entry.Type().IsRegular() && !unlike.MatchString(rel):
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&list, " %d links, %q", stat.Nlink, normal(content))
		}
		list.WriteByte('\n')
		return nil
	}))
	return list.String()
}

// unlike are files whose content differs between any two runs: keys, programs with debugging information, and what git and pnpm know
// of times, numbers of files and their store.
var unlike = regexp.MustCompile(`(^|/)(index|key(\.pub)?|target/.*|\.modules\.yaml|\.pnpm-workspace-state-v1\.json)$`)

// lacks returns which of some programs this person does not have.
func (p *person) lacks(t *testing.T, programs string) string {
	t.Helper()
	out, err := p.command(t.Context(), "for p in "+programs+"; do command -v $p >/dev/null || echo $p; done").Output()
	testkit.Must(t, err)
	return strings.TrimSpace(string(out))
}
