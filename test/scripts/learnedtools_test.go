package scripts_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// User-space syscalls are granted one by one.
func TestLearnedTools(t *testing.T) {
	t.Parallel()
	root := filepath.Join(t.TempDir(), "root")
	l := school(t, fmt.Sprintf("root = %q\n[tools]\nprograms = true\n", root))
	testkit.Must(t, os.CopyFS(root, os.DirFS(filepath.Join(l.examples, "promptware"))))
	for _, name := range []string{"today", "again"} {
		testkit.WriteProgram(t, filepath.Join(root, "tools", name), []byte("#!/bin/sh\nread -r input\necho '\"today\"'\n"))
	}
	script := l.write(t, "tools.sh", speak+`
call command Syscall.Call '{"syscall":"os/tools/today"}' || exit 1
call command Syscall.Call '{"syscall":"tools/today"}' || exit 1
call command Syscall.Call '{"syscall":"tools/missing"}'
call command Syscall.Call '{"syscall":"memory","args":["set","a",1]}' || exit 1
[ -z "$1" ] || call command Syscall.Call '{"syscall":"tools/again"}' || exit 7
`)
	line := l.learn(t, "", "sh "+script, nil)
	if want := "--allow Call:tools/missing,Call:tools/today,Memory.Set "; !strings.Contains(line, want) {
		t.Errorf("learned %q, want %s", line, want)
	}
	if o := l.run(t, line+" again", nil); o.status != 7 || !strings.Contains(o.said, `"code":403`) {
		t.Errorf("another tool: %d, %s", o.status, o.said)
	}
}

// What is registered is granted by its name.
func TestLearnedRegistered(t *testing.T) {
	t.Parallel()
	l := school(t, "")
	l.pwos(t, "call", "Syscall.Register", "--data", `{"name":"Sum.Add","kind":"query","input":{},"provider":"connection"}`)
	l.pwos(t, "call", "Syscall.Register", "--data", `{"name":"Sum.Sub","kind":"query","input":{},"provider":"connection"}`)
	script := l.write(t, "sum.sh", speak+`
call query Sum.Add '{}'
[ -z "$1" ] || call query Sum.Sub '{}' || exit 7
`)
	line := l.learn(t, "", "sh "+script, nil)
	if !strings.Contains(line, "--allow Sum.Add ") {
		t.Errorf("learned %q, want Sum.Add", line)
	}
	if o := l.run(t, line+" again", nil); o.status != 7 || !strings.Contains(o.said, `"code":403`) {
		t.Errorf("another syscall: %d, %s", o.status, o.said)
	}
}
