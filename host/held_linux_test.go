package host_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

const credential = "TOKEN=s3cret\n"

// project makes a directory with these files, which have the credential.
func project(t *testing.T, names ...string) string {
	t.Helper()
	dir := filepath.Join(shared(t), "project")
	for _, name := range names {
		path := filepath.Join(dir, name)
		testkit.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testkit.Must(t, os.WriteFile(path, []byte(credential), 0o644))
	}
	return dir
}

// heldMeans are the ways in which a program may be confined by mounts.
func heldMeans(t *testing.T, h *host.Host) map[string]host.Means {
	t.Helper()
	has := host.MeansOf(h)
	if !has.Mounts {
		t.Skip("this machine has no mount namespaces")
	}
	plain, user := has, has
	plain.Overlay = false
	user.User = true
	return map[string]host.Means{"all": has, "no overlay": plain, "user namespace": user}
}

// tries returns what a program in a project writes, and fails if one of these files is not as it was.
func tries(t *testing.T, h *host.Host, c host.Command, has host.Means, kept ...string) string {
	t.Helper()
	c.Argv[2] += "\necho done"
	p, err := host.StartAt(t.Context(), h, c, has)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
	out := all(t, p)
	for _, name := range kept {
		if text, err := os.ReadFile(filepath.Join(c.Dir, name)); err != nil || string(text) != credential {
			t.Errorf("%s was changed: %q, %v", name, text, err)
		}
	}
	return out
}

// asked starts a program that answers a line with a line. until asks again as long as an answer shows the gap between the replacing of a file
// and the moment in which the host has seen it, and returns the next one.
func asked(t *testing.T, h *host.Host, c host.Command, has host.Means, gap func(answer string) bool) (ask, until func(file string) string) {
	t.Helper()
	p, err := host.StartAt(t.Context(), h, c, has)
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
	lines := bufio.NewReader(p.Conn())
	ask = func(file string) string {
		t.Helper()
		_, err := fmt.Fprintln(p.Conn(), file)
		testkit.Must(t, err)
		testkit.Must(t, p.Conn().SetReadDeadline(time.Now().Add(bound)))
		line, err := lines.ReadString('\n')
		testkit.Must(t, err)
		return line
	}
	return ask, func(file string) string {
		t.Helper()
		for end := time.Now().Add(bound); gap(ask(file)); {
			if time.Now().After(end) {
				t.Fatalf("%s stays open to the agent", file)
			}
		}
		return ask(file)
	}
}

// TestHeld: an agent gets at none of the credentials in a project's files named .env*, whatever it tries, and what it tries
// leaves them as they were.
func TestHeld(t *testing.T) {
	t.Parallel()
	h := open(t)
	hidden := []string{".env", ".ENV.prod", ".env.local", ".envrc", "packages/app/.env", "a/b/c/.env"}
	shown := []string{".env.example", ".env.local.sample", "environment", "node_modules/x/.env", ".env.d/values"}
	for name, has := range heldMeans(t, h) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, hidden...)
			for _, name := range shown {
				testkit.Must(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755))
				testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("public"), 0o644))
			}
			c := shell(t, `
				cat .env .env.local packages/app/.env a/b/c/.env
				cat .env.example .env.local.sample environment node_modules/x/.env .env.d/values
				cat /proc/self/root"$PWD"/.env /proc/self/cwd/.env ./a/../.env
				ln .env hard; cat hard; ln -s .env soft; cat soft
				mv .env moved; cat moved; mv packages p2; cat p2/app/.env; mv packages/app app2; cat app2/.env
				mv a z; cat z/b/c/.env; rm -rf packages a/b .env; rm -f .env.local; cp .env copied; cat copied; cp -r packages all; cat all/app/.env
				mv soft .env; ln -sf soft .env; echo x >.env; echo x >>.env.local; truncate -s 0 .env; chmod 777 .env; touch .env
				umount .env; mount --bind . .; unshare -m cat .env; dd if=.env
				python3 -c 'import os; print(os.open(".env", os.O_RDWR))'
				tar c . | tar xO; grep -r TOKEN .
				cat .ENV.prod .envrc; stat -c %s .env`)
			c.Dir, c.Hold, c.Stderr = dir, []string{dir}, ""
			c.Argv[2] = "exec 2>&1\n" + c.Argv[2]
			out := tries(t, h, c, has, hidden...)
			if strings.Contains(out, "s3cret") || !strings.Contains(out, "pwos project allow") || !strings.Contains(out, strings.Repeat("public", len(shown))) || !strings.HasSuffix(out, "done\n") {
				t.Errorf("the agent read: %s", out)
			}
		})
	}
}

// TestHeldShown: templates and what is named are shown, and what is beside the project too; a file that it names it may replace.
func TestHeldShown(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, has := range heldMeans(t, h) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, ".env", ".env.read", ".env.write", ".env.example", "sub/.env", "sub/x/.env", "node_modules/x/.env", ".env.d/x")
			cat := func(c host.Command, files ...string) string {
				t.Helper()
				c.Argv[2] = "for f in " + strings.Join(files, " ") + `; do echo $f $(cat $f 2>&1 | grep -o s3cret); done; mv .env.example new; mv new .env.write; test ! -e sub || rm -r sub/x/y; test -w .`
				p, err := host.StartAt(t.Context(), h, c, has)
				testkit.Must(t, err)
				t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
				return all(t, p)
			}
			c := shell(t, "")
			c.Dir, c.Hold = dir, []string{dir}
			c.Read, c.Write = append(c.Read, filepath.Join(dir, ".env.read")), []string{filepath.Join(dir, ".env.write")}
			out := cat(c, ".env", ".env.read", ".env.write", ".env.example", "sub/.env", "node_modules/x/.env", ".env.d/x")
			if want := ".env\n.env.read s3cret\n.env.write s3cret\n.env.example s3cret\nsub/.env\nnode_modules/x/.env s3cret\n.env.d/x s3cret\n"; out != want {
				t.Errorf("read %s, want %s", out, want)
			}
			if _, err := os.Stat(filepath.Join(dir, ".env.example")); err == nil {
				t.Error("a file that it may write could not be replaced")
			}
			c.Hold, c.Read, c.Write = nil, c.Read[:1], nil
			if out := cat(c, ".env", "sub/.env"); out != ".env s3cret\nsub/.env s3cret\n" {
				t.Errorf("without Hold it read %s", out)
			}
			// In a part of a repository, the whole is held, and an agent cannot end it by a repository of its own.
			testkit.Must(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
			testkit.Must(t, os.Mkdir(filepath.Join(dir, "sub", ".git"), 0o755))
			c.Dir = filepath.Join(dir, "sub")
			c.Hold = []string{c.Dir}
			if out := cat(c, ".env", "x/.env", "../.env"); out != ".env\nx/.env\n../.env\n" {
				t.Errorf("in a part it read %s", out)
			}
		})
	}
}

// TestHeldReplaced: when another program replaces a hidden file, or a directory above it, as editors and git do, the new one is
// hidden from agents that run, also after many times.
func TestHeldReplaced(t *testing.T) {
	t.Parallel()
	h := open(t)
	replace := func(t *testing.T, path string) {
		t.Helper()
		testkit.Must(t, os.WriteFile(path+".new", []byte(credential), 0o644))
		testkit.Must(t, os.Rename(path+".new", path))
	}
	for name, has := range heldMeans(t, h) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, ".env", "sub/deep/.env", "named")
			c := shell(t, `while read -r file; do text=$(cat $file 2>&1); echo "$text" | tr '\n' ' '; echo; done`)
			c.Dir, c.Hold, c.Hide = dir, []string{dir}, []string{filepath.Join(dir, "named")}
			secret := func(text string) bool { return strings.Contains(text, "s3cret") }
			read, settled := asked(t, h, c, has, secret)
			until := func(file string) {
				t.Helper()
				if text := settled(file); secret(text) || strings.Contains(text, "No such file") {
					t.Errorf("%s: %s", file, text)
				}
			}
			file := filepath.Join(dir, ".env")
			until(".env")
			for range 3 {
				replace(t, file)
				until(".env")
			}
			testkit.Must(t, os.Rename(file, file+"~"))
			if text := read(".env~"); strings.Contains(text, "s3cret") {
				t.Errorf("the old file under another name: %s", text)
			}
			testkit.Must(t, os.WriteFile(file, []byte(credential), 0o644))
			until(".env")
			testkit.Must(t, os.Remove(file))
			testkit.Must(t, os.WriteFile(file, []byte(credential), 0o644))
			until(".env")
			testkit.Must(t, os.Link(file+"~", file+".linked"))
			testkit.Must(t, os.Rename(file+".linked", file))
			until(".env")
			replace(t, filepath.Join(dir, "named"))
			until("named")
			replace(t, filepath.Join(dir, "sub/deep/.env"))
			until("sub/deep/.env")
			for _, above := range []string{"sub/deep", "sub"} {
				at := filepath.Join(dir, above)
				testkit.Must(t, os.Rename(at, at+".old"))
				testkit.Must(t, os.MkdirAll(filepath.Join(dir, "sub/deep"), 0o755))
				testkit.Must(t, os.WriteFile(filepath.Join(dir, "sub/deep/.env"), []byte(credential), 0o644))
				until("sub/deep/.env")
			}
			testkit.Must(t, os.Remove(file))
			testkit.Must(t, os.Symlink("shown", file))
			testkit.Must(t, os.WriteFile(filepath.Join(dir, "shown"), []byte(credential), 0o644))
			until(".env")
			// The agent was stopped for a moment each time, and goes on.
			if text := read("shown"); !strings.Contains(text, "s3cret") {
				t.Errorf("it does not read other files: %s", text)
			}
			for _, name := range []string{".env~", "sub/deep/.env", "named"} {
				if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(text) != credential {
					t.Errorf("%s was changed outside: %q, %v", name, text, err)
				}
			}
		})
	}
}
