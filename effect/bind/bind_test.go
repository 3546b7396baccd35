package bind_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/promptware-os/pwos/effect/bind"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// use returns the use of a tool with a command.
func use(command string) *schema.ToolUseInput {
	return &schema.ToolUseInput{Host: "claude", Tool: "Bash", Input: schema.Value(`{"command":` + string(schema.AppendString(nil, command)) + `}`)}
}

// TestTool checks which files a command binds, and what is said of those that it does not bind.
func TestTool(t *testing.T) {
	t.Parallel()
	dir, outside := testkit.Dir(t), testkit.Dir(t)
	for name, text := range map[string]string{"d.sh": "echo 1", "sub/e.sh": "echo 2", "a b": "x", "big": strings.Repeat("x", 8<<20+1)} {
		testkit.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	testkit.Must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	testkit.Must(t, os.Symlink("d.sh", filepath.Join(dir, "link")))
	testkit.Must(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "escape")))
	testkit.Must(t, os.Symlink("../"+filepath.Base(outside)+"/secret", filepath.Join(dir, "escape2")))
	testkit.Must(t, syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600))
	many := "cat"
	for i := range 10 {
		name := fmt.Sprint("f", i)
		testkit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600))
		many += " " + name
	}
	for _, tt := range []struct{ command, files, unbound string }{
		{"sh d.sh", "d.sh", ""},
		{"./d.sh --x", "d.sh", ""},
		{"X=1 sh ./sub/../d.sh d.sh", "d.sh", ""},
		{dir + "/d.sh", "d.sh", ""},
		{`sh "a b" && sh 'sub/e.sh'|cat`, "a b sub/e.sh", ""},
		{`sh a\\ b`, "", "it names no file"},
		{`sh a\ b`, "a b", ""},
		{"python3 --config=d.sh < sub/e.sh", "d.sh sub/e.sh", ""},
		{"sh link", "link", ""},
		{"sh escape", "", "leads elsewhere"},
		{"sh escape2", "", "leads elsewhere"},
		{"sh " + outside + "/secret", "", "it names no file that the agent may write"},
		{"sh ../" + filepath.Base(outside) + "/secret", "", "it names no file that the agent may write"},
		{"sh pipe", "", "is not a regular file"},
		{"sh sub", "", "is a directory"},
		{"sh big", "", "is longer than"},
		{"sh new.sh", "", "it names no file"},
		{"git status", "", "it names no file"},
		{"sh $X d.sh", "d.sh", "what a shell expands"},
		{`sh "d.sh`, "d.sh", "cannot be parsed"},
		{"cd sub && sh e.sh", "", "cd may run files"},
		{"make", "", "make may run files"},
		{`sh -c "sh d.sh"`, "", "-c may name code"},
		{many, "f0 f1 f2 f3 f4 f5 f6 f7", "more than 8 files"},
	} {
		got := bind.Tool(bind.Place{Dir: dir, Roots: []string{dir}}, use(tt.command))
		var names []string
		for _, f := range got.Files {
			rel, err := filepath.Rel(dir, f.Path)
			testkit.Must(t, err)
			names = append(names, rel)
			if len(f.Digest) < 40 {
				t.Errorf("%s: %+v", tt.command, f)
			}
		}
		if strings.Join(names, " ") != tt.files || !strings.Contains(got.Unbound, tt.unbound) || (tt.unbound == "") != (got.Unbound == "") {
			t.Errorf("%s: binds %v, unbound %q, want %s, %q", tt.command, names, got.Unbound, tt.files, tt.unbound)
		}
	}
	if got := bind.Tool(bind.Place{Roots: []string{dir}}, use("sh d.sh")); got.Unbound != "the directory that it runs in is not known" {
		t.Errorf("without a directory: %+v", got)
	}
	read := &schema.ToolUseInput{Tool: "Read", Input: schema.Value(`{"file_path":"d.sh"}`)}
	cut := use("sh d.sh")
	cut.Cut = []string{"command"}
	list := &schema.ToolUseInput{Tool: "shell", Input: schema.Value(`{"command":["sh","d.sh"]}`)}
	at := bind.Place{Dir: dir, Roots: []string{dir}}
	if bind.Tool(at, read) != nil || bind.Tool(at, cut).Unbound == "" || len(bind.Tool(at, list).Files) != 1 {
		t.Error("a tool without a command, one whose command was cut, or one with a list of words")
	}
}

// TestToolSeesChanges checks that what is bound changes with the file, its link and its name.
func TestToolSeesChanges(t *testing.T) {
	t.Parallel()
	dir := testkit.Dir(t)
	path := filepath.Join(dir, "d.sh")
	now := func() string {
		text, err := schema.Marshal(bind.Tool(bind.Place{Dir: dir, Roots: []string{dir}}, use("sh d.sh")))
		testkit.Must(t, err)
		return string(text)
	}
	seen := map[string]string{now(): "missing"}
	for _, change := range []struct {
		what string
		do   func() error
	}{
		{"made", func() error { return os.WriteFile(path, []byte("one"), 0o600) }},
		{"changed", func() error { return os.WriteFile(path, []byte("two"), 0o600) }},
		{"replaced by a link", func() error {
			return errors.Join(os.WriteFile(filepath.Join(dir, "x"), []byte("three"), 0o600), os.WriteFile(filepath.Join(dir, "y"), []byte("four"), 0o600), os.Remove(path), os.Symlink("x", path))
		}},
		{"link retargeted", func() error { return errors.Join(os.Remove(path), os.Symlink("y", path)) }},
		{"grown beyond the bound", func() error { return errors.Join(os.Remove(path), os.WriteFile(path, make([]byte, 8<<20+1), 0o600)) }},
	} {
		testkit.Must(t, change.do())
		text := now()
		if before := seen[text]; before != "" {
			t.Errorf("%s binds what %s did: %s", change.what, before, text)
		}
		seen[text] = change.what
	}
}

// TestToolReview: of an agent that works on a copy, what is in the copy is bound, under the name that the agent has for it.
func TestToolReview(t *testing.T) {
	t.Parallel()
	dir, copied := testkit.Dir(t), testkit.Dir(t)
	testkit.Must(t, os.WriteFile(filepath.Join(dir, "d.sh"), []byte("of its user"), 0o600))
	testkit.Must(t, os.WriteFile(filepath.Join(copied, "d.sh"), []byte("of the agent, longer"), 0o600))
	for _, root := range []string{dir, filepath.Dir(dir)} {
		at := bind.Place{Dir: dir, Roots: []string{root}, Review: bind.Review{Of: dir, Copy: copied}}
		got := bind.Tool(at, use("sh d.sh"))
		if len(got.Files) != 1 || got.Files[0].Path != filepath.Join(dir, "d.sh") || got.Files[0].Size != 20 {
			t.Errorf("of %s it binds %+v", root, got)
		}
	}
}
