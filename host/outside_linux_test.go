package host_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestOutside: an agent reads what programs outside run, and cannot change, remove, replace or move it, whatever it tries, except for what
// it is given by name. What is beside it, it may change.
func TestOutside(t *testing.T) {
	t.Parallel()
	h := open(t)
	kept := []string{
		".vscode/settings.json", ".VSCODE/Tasks.JSON", ".idea/a.xml", ".idea/sub/b.xml", ".mcp.json", ".claude/settings.json", ".claude/settings.local.json",
		".codex/config.toml", ".pwos.toml", "packages/app/.vscode/tasks.json", "a/b/c/.vscode/tasks.json", "real/tasks.json", "node/target",
	}
	for name, has := range heldMeans(t, h) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, append(kept, "given/.mcp.json", ".vscode/launch.json", "node_modules/x/.mcp.json")...)
			testkit.Must(t, os.Symlink("../real", filepath.Join(dir, "node", ".vscode")))
			testkit.Must(t, os.Symlink("node/target", filepath.Join(dir, ".envrc")))
			c := shell(t, `
				for f in `+strings.Join(kept, " ")+` .envrc node/.vscode/tasks.json; do
					grep -q s3cret $f || echo cannot read $f
					echo x >$f && echo changed $f; echo x >>$f && echo changed $f; rm -f $f && echo removed $f; mv $f moved && echo moved $f
					chmod 777 $f && echo mode of $f; touch $f && echo time of $f; ln $f linked && echo linked $f; truncate -s 0 $f && echo cut $f
					cp node/target other; mv other $f && echo replaced $f; ln -sf moved $f && echo replaced by link $f; dd of=$f </dev/null && echo written $f
				done
				mkdir -p x; for d in .vscode .idea .claude .codex packages packages/app a a/b node node/.vscode real; do
					mv $d gone && echo moved $d; rm -rf $d && echo removed $d; mv -T x $d && echo replaced $d
				done
				echo x >.idea/new && echo made .idea/new; umount .mcp.json && echo unmounted; mount -o remount,bind,rw .mcp.json && echo remounted
				for f in .vscode/launch.json given/.mcp.json node_modules/x/.mcp.json; do { echo x >$f; mv $f $f.new; mv $f.new $f; } || echo cannot change $f; done
				echo x >.vscode/new || echo cannot make`)
			c.Dir, c.Hold, c.Write, c.Stderr = dir, []string{}, []string{filepath.Join(dir, "given/.mcp.json")}, ""
			c.Argv[2] = "exec 2>/dev/null\n" + c.Argv[2]
			if out := tries(t, h, c, has, kept...); out != "done\n" {
				t.Errorf("the agent could: %s", out)
			}
		})
	}
}

// TestOutsideReplaced: a file that a person's editor replaces stays read-only for agents that run, and they read the new one.
func TestOutsideReplaced(t *testing.T) {
	t.Parallel()
	h := open(t)
	for name, has := range heldMeans(t, h) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, ".vscode/settings.json", ".idea/a.xml")
			c := shell(t, `while read -r file; do if (: >>$file) 2>/dev/null; then echo wrote; else cat $file; fi; done`)
			c.Dir = dir
			_, settled := asked(t, h, c, has, func(text string) bool { return text == "wrote\n" })
			until := func(file, want string) {
				t.Helper()
				if text := settled(file); text != want {
					t.Errorf("%s: %q, want %q", file, text, want)
				}
			}
			file := filepath.Join(dir, ".vscode", "settings.json")
			until(".vscode/settings.json", credential)
			for i := range 3 {
				text := fmt.Sprintln("version", i)
				testkit.Must(t, os.WriteFile(file+".new", []byte(text), 0o644))
				testkit.Must(t, os.Rename(file+".new", file))
				until(".vscode/settings.json", text)
			}
			testkit.Must(t, os.Rename(filepath.Join(dir, ".vscode"), filepath.Join(dir, "old")))
			testkit.Must(t, os.Mkdir(filepath.Join(dir, ".vscode"), 0o755))
			testkit.Must(t, os.WriteFile(file, []byte("again\n"), 0o644))
			until(".vscode/settings.json", "again\n")
			testkit.Must(t, os.Rename(filepath.Join(dir, ".idea"), filepath.Join(dir, "idea")))
			testkit.Must(t, os.Mkdir(filepath.Join(dir, ".idea"), 0o755))
			testkit.Must(t, os.WriteFile(filepath.Join(dir, ".idea", "a.xml"), []byte("new\n"), 0o644))
			until(".idea/a.xml", "new\n")
		})
	}
}
