package hostfile_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/door/hostfile"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestJSON checks that setting and removing an entry leaves the rest of the file unchanged, including comments.
func TestJSON(t *testing.T) {
	t.Parallel()
	const value = `{"command":"/p","args":["a","b"]}`
	for name, test := range map[string]struct{ before, after, removed string }{
		"empty": {"", "{\n  \"servers\": {\n    \"pwos\": {\n      \"command\": \"/p\",\n      \"args\": [\"a\", \"b\"]\n    }\n  }\n}\n", "{}\n"},
		"others": {
			"{\n\t\"x\": [1,2, 3],\n\t\"servers\": {\n\t\t\"o\": {} // mine\n\t}\n}\n",
			"{\n\t\"x\": [1,2, 3],\n\t\"servers\": {\n\t\t\"o\": {}, // mine\n\t\t\"pwos\": {\n\t\t\t\"command\": \"/p\",\n\t\t\t\"args\": [\"a\", \"b\"]\n\t\t}\n\t}\n}\n",
			"{\n\t\"x\": [1,2, 3],\n\t\"servers\": {\n\t\t\"o\": {} // mine\n\t}\n}\n",
		},
		"comma": {
			"{\n  // first\n  \"a\": 1,\n}\n",
			"{\n  // first\n  \"a\": 1,\n  \"servers\": {\n    \"pwos\": {\n      \"command\": \"/p\",\n      \"args\": [\"a\", \"b\"]\n    }\n  },\n}\n",
			"{\n  // first\n  \"a\": 1\n}\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := hostfile.SetMember([]byte(test.before), []byte(value), "servers", "pwos")
			testkit.Must(t, err)
			if string(after) != test.after {
				t.Errorf("set: %s\nwant %s", after, test.after)
			}
			again, err := hostfile.SetMember(after, []byte(value), "servers", "pwos")
			testkit.Must(t, err)
			if string(again) != test.after {
				t.Errorf("set again: %s", again)
			}
			removed, err := hostfile.RemoveMember(after, "servers", "pwos")
			testkit.Must(t, err)
			if string(removed) != test.removed {
				t.Errorf("removed: %s\nwant %s", removed, test.removed)
			}
		})
	}
}

// TestForeignJSON checks that invalid JSON is an error.
func TestForeignJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":`: "not JSON", `[]`: "is not a JSON object", `{"servers":[]}`: "servers in it is not a JSON object",
		`{"a":1,"a":2}`: "two members", `{} {}`: "not JSON", "\xff": "not JSON", `null`: "is not a JSON object",
	} {
		if _, err := hostfile.SetMember([]byte(text), []byte(`{}`), "servers", "pwos"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestTOML checks that setting, replacing and removing a table leaves the rest of the file unchanged.
func TestTOML(t *testing.T) {
	t.Parallel()
	const body = "command = \"/p\"\n"
	for name, test := range map[string]struct{ before, after, removed string }{
		"empty": {"", "[m.pwos]\ncommand = \"/p\"\n", ""},
		"others": {
			"a = 1 # one\n\n# o\n[m.o]\nx = 2\n",
			"a = 1 # one\n\n# o\n[m.o]\nx = 2\n\n[m.pwos]\ncommand = \"/p\"\n",
			"a = 1 # one\n\n# o\n[m.o]\nx = 2\n",
		},
		"older": {
			"[m.pwos]\ncommand = \"/q\"\n[m.pwos.env]\nA = \"b\"\n\n# o\n[m.o]\nx = 2\n",
			"[m.pwos]\ncommand = \"/p\"\n\n# o\n[m.o]\nx = 2\n",
			"# o\n[m.o]\nx = 2\n",
		},
		"quoted": {"[ m . \"pwos\" ] # here\ncommand = '/q'", "[m.pwos]\ncommand = \"/p\"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after, err := hostfile.SetTable([]byte(test.before), "m", "pwos", body)
			testkit.Must(t, err)
			if string(after) != test.after {
				t.Errorf("set: %q\nwant %q", after, test.after)
			}
			again, err := hostfile.SetTable(after, "m", "pwos", body)
			testkit.Must(t, err)
			if string(again) != test.after {
				t.Errorf("set again: %q", again)
			}
			removed, err := hostfile.RemoveTable(after, "m", "pwos")
			testkit.Must(t, err)
			if string(removed) != test.removed {
				t.Errorf("removed: %q\nwant %q", removed, test.removed)
			}
		})
	}
}

// TestForeignTOML checks that invalid TOML, and tables that cannot be changed alone, are errors.
func TestForeignTOML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a = ": "not TOML", "m = 1": "m in it is not a table", "[m]\npwos = 1": "m.pwos in it is not a table",
		"m = { pwos = { command = 'x' } }":                "in a form that cannot be replaced",
		"[m]\npwos.command = 'x'":                         "in a form that cannot be replaced",
		"a = '''\n[m.pwos]\n'''\n[m.pwos]\ncommand='x'\n": "cannot be changed without changing more",
	} {
		if out, err := hostfile.SetTable([]byte(text), "m", "pwos", "command = \"/p\"\n"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q %v, want %q", text, out, err, want)
		}
	}
}

func appendLine(text []byte) ([]byte, error) { return append(text, "more\n"...), nil }

// TestFile checks that a change keeps the mode of the file and its symbolic link, and leaves a backup.
func TestFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "link.json")
	testkit.Must(t, errors.Join(os.WriteFile(file, []byte("one\ntwo\n"), 0o640), os.Chmod(file, 0o640), os.Symlink("real.json", link)))
	c, err := hostfile.Plan(link, 0o600, appendLine)
	testkit.Must(t, err)
	if want := "--- " + link + "\n+++ " + link + "\n one\n two\n+more\n"; c.Diff() != want {
		t.Errorf("diff %q, want %q", c.Diff(), want)
	}
	backup, err := c.Apply(time.Unix(0, 0))
	testkit.Must(t, err)
	for path, want := range map[string]string{file: "one\ntwo\nmore\n", backup: "one\ntwo\n"} {
		text, err := os.ReadFile(path)
		testkit.Must(t, err)
		info, err := os.Lstat(path)
		testkit.Must(t, err)
		if string(text) != want || info.Mode() != 0o640 {
			t.Errorf("%s: %q, %s", path, text, info.Mode())
		}
	}
	if to, err := os.Readlink(link); to != "real.json" {
		t.Errorf("the link: %q %v", to, err)
	}
	entries, err := os.ReadDir(dir)
	testkit.Must(t, err)
	if len(entries) != 3 {
		t.Errorf("there are %v", entries)
	}
}

// TestNewFile checks that Apply creates a missing file and its directory.
func TestNewFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "a", "b.json")
	c, err := hostfile.Plan(file, 0o600, appendLine)
	testkit.Must(t, err)
	backup, err := c.Apply(time.Now())
	testkit.Must(t, err)
	info, err := os.Stat(file)
	testkit.Must(t, err)
	if backup != "" || info.Mode() != 0o600 {
		t.Errorf("backup %q, mode %s", backup, info.Mode())
	}
}

// TestLeftAlone checks that a file that cannot be changed stays unchanged, and that there is an error.
func TestLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "f")
	testkit.Must(t, errors.Join(os.WriteFile(file, []byte("x"), 0o600), os.Symlink("nowhere", filepath.Join(dir, "dangling")), os.Mkdir(filepath.Join(dir, "d"), 0o700)))
	for name, want := range map[string]string{"dangling": "a dangling link", "d": "not a regular file"} {
		if _, err := hostfile.Plan(filepath.Join(dir, name), 0o600, appendLine); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	broken := errors.New("broken")
	if _, err := hostfile.Plan(file, 0o600, func([]byte) ([]byte, error) { return nil, broken }); !errors.Is(err, broken) || !strings.Contains(err.Error(), "is unchanged") {
		t.Errorf("a broken file: %v", err)
	}
	c, err := hostfile.Plan(file, 0o600, appendLine)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(file, []byte("y"), 0o600))
	if _, err := c.Apply(time.Now()); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Errorf("a file that has changed: %v", err)
	}
	if text, err := os.ReadFile(file); string(text) != "y" {
		t.Errorf("the file has %q, %v", text, err)
	}
}
