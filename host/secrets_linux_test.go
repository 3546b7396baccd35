package host_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// planted returns files of tools with a credential, as the tools name them, and then files that an agent needs.
func planted(t *testing.T) (secrets, others []string) {
	t.Helper()
	text, err := os.ReadFile("testdata/secrets.txt")
	testkit.Must(t, err)
	list := &secrets
	for line := range strings.Lines(string(text)) {
		switch line = strings.TrimSpace(line); {
		case line == "":
			list = &others
		case !strings.HasPrefix(line, "#"):
			*list = append(*list, line)
		}
	}
	return secrets, others
}

// TestSecrets: of the credentials of known tools an agent can read none, without privileges and as root, whether a variable
// of the kernel moves them or not; it can read what lies beside them.
func TestSecrets(t *testing.T) {
	t.Parallel()
	secrets, others := planted(t)
	tools := map[string]bool{}
	for _, name := range secrets {
		first, rest, _ := strings.Cut(name, "/")
		if strings.HasPrefix(first, ".config") || strings.HasPrefix(first, "Library") {
			first, _, _ = strings.Cut(rest, "/")
		}
		tools[first] = true
	}
	if len(secrets) < 67 || len(tools) < 60 {
		t.Errorf("only %d places of about %d tools are tried", len(secrets), len(tools))
	}
	users := []int{os.Geteuid()}
	if users[0] == 0 {
		users = append(users, 65534)
	}
	for _, user := range users {
		t.Run(fmt.Sprint(user), func(t *testing.T) {
			t.Parallel()
			above := shared(t)
			home, moved := filepath.Join(above, "home"), filepath.Join(above, "moved")
			var paths []string
			plant := func(dir, name string) { paths = append(paths, plant(t, dir, name)) }
			for _, name := range secrets {
				plant(home, name)
				for from, to := range map[string]string{".config/": "config", ".local/share/": "data", ".aws/credentials": "aws", ".cargo/credentials.toml": "cargo/credentials.toml"} {
					if rest, ok := strings.CutPrefix(name, from); ok {
						plant(moved, filepath.Join(to, rest))
					}
				}
			}
			for _, name := range others {
				plant(home, name)
			}
			plant(moved, "cargo/bin/cargo")
			testkit.Must(t, os.Mkdir(filepath.Join(above, "work"), 0o700))
			testkit.Must(t, os.WriteFile(filepath.Join(above, "work", "paths"), []byte(strings.Join(paths, "\n")), 0o600))
			testkit.Must(t, filepath.WalkDir(above, func(path string, _ os.DirEntry, err error) error {
				return errors.Join(err, os.Chown(path, user, user))
			}))
			cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "t-secrets", above)
			cmd.Dir = "/"
			cmd.Env = []string{
				"HOME=" + home, "PATH=/usr/bin:/bin", "XDG_CONFIG_HOME=" + moved + "/config", "XDG_DATA_HOME=" + moved + "/data",
				"AWS_SHARED_CREDENTIALS_FILE=" + moved + "/aws", "CARGO_HOME=" + moved + "/cargo",
				"CODEX_HOME=" + above, "PIP_CONFIG_FILE=/dev/null", "KUBECONFIG=:relative:" + home, // these hide nothing
			}
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
			text, err := cmd.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			read := map[string]bool{}
			for line := range bytes.Lines(text) {
				read[strings.TrimSpace(string(line))] = true
			}
			count := 0
			for path := range read {
				if strings.HasSuffix(path, " secret") {
					count++
					t.Errorf("%s can be read", path)
				}
			}
			if count > 0 {
				t.Errorf("%d of %d places can be read", count, len(secrets))
			}
			for _, name := range others {
				if !read[filepath.Join(home, name)+" public"] {
					t.Errorf("%s cannot be read: %s", name, text)
				}
			}
			if !read[moved+"/cargo/bin/cargo public"] {
				t.Errorf("a toolchain whose home was moved cannot be read: %s", text)
			}
		})
	}
}

// plant writes a file that says whether it is secret, and returns its path.
func plant(t *testing.T, dir, name string) string {
	t.Helper()
	path, what := filepath.Join(dir, name), "secret"
	if strings.Contains(name, "bin/") || strings.HasSuffix(name, "notes.txt") {
		what = "public"
	}
	testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	testkit.Must(t, os.WriteFile(path, []byte(what), 0o700))
	return path
}

// secretsOf runs an agent that reads the planted files, with the homes and the variables of this process.
func secretsOf(args []string) int {
	h, err := host.New(host.Options{})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer h.Close(context.Background(), 0)
	p, err := h.Start(context.Background(), host.Command{
		Argv: []string{"/proc/self/exe", "t-read-all"}, Dir: filepath.Join(args[0], "work"), PID: 7, Sandbox: host.SandboxDefault,
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	_, err = io.Copy(os.Stdout, p.Conn())
	<-p.Done()
	if err := errors.Join(err, p.Conn().Close()); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// readAll prints those of the planted files that can be read, with their content.
func readAll([]string) int {
	list, err := os.ReadFile("paths")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for path := range strings.SplitSeq(string(list), "\n") {
		if text, err := os.ReadFile(path); err == nil {
			fmt.Println(path, string(text))
		}
	}
	return 0
}
