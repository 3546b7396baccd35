package sdk_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/interpreters"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sdk"
)

func TestMain(m *testing.M) { testkernel.Main(m) }

// newKernel starts a kernel, and returns its runtime directory and a connection to it.
func newKernel(t testing.TB) (string, *client.Client) {
	t.Helper()
	cfg := testkernel.Settings(testkit.NewPlace(t, ""))
	testkernel.Start(t, cfg)
	return cfg.RuntimeDir, testkernel.Dial(t, cfg.RuntimeDir)
}

// described returns the description of a kernel for its client.
func described(t testing.TB, c *client.Client) sdk.Kernel {
	t.Helper()
	list, err := client.Call(testkit.Context(t), c, schema.SyscallList, &schema.ListInput{})
	testkit.Must(t, err)
	k := sdk.Kernel{Schemas: list.Schemas}
	for _, typ := range list.Syscalls {
		one, err := client.Call(testkit.Context(t), c, schema.SyscallDescribe, &schema.DescribeInput{Name: typ})
		testkit.Must(t, err)
		k.Syscalls = append(k.Syscalls, *one)
	}
	return k
}

// written returns the client of a kernel in a language.
func written(t testing.TB, language string, k sdk.Kernel) string {
	t.Helper()
	var b strings.Builder
	testkit.Must(t, sdk.Write(&b, language, k))
	return b.String()
}

// runner runs programs in a language.
type runner struct {
	language, file, extension string
	program                   func() (string, error)
}

// runners returns the runners of all languages.
func runners() []runner {
	return []runner{
		{"python", "pwos.py", ".py", python},
		{"typescript", "pwos.ts", ".ts", node},
	}
}

var (
	python = sync.OnceValues(interpreters.Python)
	node   = sync.OnceValues(interpreters.Node)
)

// project is a directory with a client and the programs of testdata.
type project struct {
	t testing.TB
	runner
	path, dir string
}

func (r runner) project(t testing.TB, source string) *project {
	t.Helper()
	path, err := r.program()
	if err != nil {
		t.Skip(err)
	}
	p := &project{t: t, runner: r, path: path, dir: testkit.Dir(t)}
	testkit.Must(t, os.WriteFile(filepath.Join(p.dir, p.file), []byte(source), 0o600))
	return p
}

// run runs a program of testdata, which must exit with 0, and returns its output.
func (p *project) run(runtime, name string, args ...string) string {
	p.t.Helper()
	program, err := os.ReadFile(filepath.Join("testdata", name+p.extension))
	testkit.Must(p.t, err)
	file := filepath.Join(p.dir, name+p.extension)
	testkit.Must(p.t, os.WriteFile(file, program, 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, append([]string{file}, args...)...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PWOS_RUNTIME_DIR="+runtime, "PYTHONDONTWRITEBYTECODE=1", "NODE_NO_WARNINGS=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		p.t.Errorf("%s%s: %v\n%s%s", name, p.extension, err, stdout.String(), stderr.String())
	}
	return stdout.String()
}

// same compares the output of a program.
func same(t *testing.T, got, want string) {
	t.Helper()
	if got, want := strings.TrimSpace(got), strings.TrimSpace(want); got != want {
		t.Errorf("it printed\n%s\nwant\n%s", got, want)
	}
}
