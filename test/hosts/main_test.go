// Package hosts_test runs real agent hosts, with a scripted model, through the doors of a real kernel.
package hosts_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		if run, ok := programs()[os.Args[1]]; ok {
			if err := run(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		}
	}
	os.Exit(testkit.Main(m))
}

// patience bounds a session of a host.
const patience = 3 * time.Minute

// hosts returns the directory with the hosts' programs. PWOS_HOSTS names one where npm/install has put them; with PWOS_LONG it puts them
// once into the user's cache.
var hosts = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("PWOS_HOSTS"); dir != "" {
		return filepath.Join(dir, "node_modules", ".bin"), nil
	}
	if os.Getenv("PWOS_LONG") == "" {
		return "", errors.New("PWOS_LONG=1 installs the hosts, 2.5 GB; PWOS_HOSTS=DIR names where \"bash test/hosts/npm/install DIR\" has")
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "pwos-hosts")
	if out, err := exec.Command("bash", "npm/install", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("install the hosts: %w: %s", err, out)
	}
	return filepath.Join(dir, "node_modules", ".bin"), nil
})

// place is a testkit.Place with a user's home directory and a project.
type place struct {
	*testkit.Place
	t    *testing.T
	bin  string // of the hosts
	pwos string
	env  []string // in addition to the usual variables
}

func newPlace(t *testing.T) *place {
	t.Helper()
	bin, err := hosts()
	if err != nil {
		t.Skip(err)
	}
	return newPlaceAt(t, bin)
}

// newPlaceAt is newPlace with the hosts' programs in a directory, or without any.
func newPlaceAt(t *testing.T, bin string) *place {
	t.Helper()
	p := &place{Place: testkit.NewPlace(t, ""), t: t, bin: bin, pwos: testkit.Program(t, "pwos")}
	testkit.Must(t, errors.Join(os.Mkdir(p.Path("home"), 0o700), os.Mkdir(p.Path("project"), 0o700)))
	t.Cleanup(func() { _, _ = p.try("pwos", "shutdown") }) // it may have ended already
	return p
}

// try runs a command in the project.
func (p *place) try(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := p.command(ctx, name, args...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// command returns a command that runs in the project.
func (p *place) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := filepath.Join(p.bin, name)
	switch name {
	case "pwos":
		path = p.pwos
	case "sh", "bash":
		path = "/bin/" + name
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = p.Path("project")
	cmd.Env = []string{
		"HOME=" + p.Path("home"), "PATH=" + filepath.Dir(p.pwos) + ":" + p.bin + ":" + os.Getenv("PATH"), "TERM=dumb", "SHELL=/bin/bash",
		"PWOS_RUNTIME_DIR=" + p.RuntimeDir(), "PWOS_STATE_DIR=" + p.StateDir(),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
		"ANTHROPIC_API_KEY=x", "OPENAI_API_KEY=x",
	}
	cmd.Env = append(cmd.Env, p.env...)
	return cmd
}

// run is try for a command that must succeed.
func (p *place) run(name string, args ...string) string {
	p.t.Helper()
	out, err := p.try(name, args...)
	if err != nil {
		p.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return out
}
