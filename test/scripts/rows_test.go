package scripts_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// TestEachSyscallHasAScript: a row that clients can call names the script that shows it as a user sees it, and the script
// calls it by its type. The kernel's own commands have none.
func TestEachSyscallHasAScript(t *testing.T) {
	t.Parallel()
	for _, row := range schema.Syscalls() {
		if problem := problemOf(row); problem != "" {
			t.Errorf("%s: %s: set Script in its row to a file below test/, such as scripts/memory.txtar, that calls it with \"pwos call %s\"", row.Type, problem, row.Type)
		}
	}
}

func problemOf(row *schema.Syscall) string {
	switch {
	case row.Internal && row.Script != "":
		return "it is the kernel's own and has a script"
	case row.Internal:
		return ""
	case row.Script == "":
		return "it has no script"
	}
	script, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(row.Script)))
	if err != nil {
		return err.Error()
	}
	call := regexp.MustCompile(`(?m)^[^#\n]*(\bcall |"type":")` + regexp.QuoteMeta(row.Type) + `\b`)
	if !call.Match(script) {
		return row.Script + " does not call it"
	}
	return ""
}

func TestProblemsOfScriptsAreSeen(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		row  schema.Syscall
		fine bool
	}{
		"shown":             {schema.Syscall{Type: "Memory.Get", Script: "scripts/memory.txtar"}, true},
		"none":              {schema.Syscall{Type: "Memory.Get"}, false},
		"no file":           {schema.Syscall{Type: "Memory.Get", Script: "scripts/nothing.txtar"}, false},
		"another's":         {schema.Syscall{Type: "Memory.Get", Script: "scripts/delta.txtar"}, false},
		"the kernel's own":  {schema.Syscall{Type: "Delta.Drop", Internal: true}, true},
		"own with a script": {schema.Syscall{Type: "Delta.Drop", Internal: true, Script: "scripts/delta.txtar"}, false},
	} {
		if got := problemOf(&tt.row); (got == "") != tt.fine {
			t.Errorf("%s: %q", name, got)
		}
	}
}
