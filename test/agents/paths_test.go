package agents_test

import (
	"fmt"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// probe is a module that tries to escape, and prints the results.
const probe = `package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	var got []string
	try := func(what string, err error) {
		if err == nil {
			got = append(got, what)
		}
	}
	for _, name := range []string{"/", ".", "/etc/passwd", "../probe", "/proc/self/environ", "probe"} {
		_, err := os.ReadFile(name)
		try("file "+name, err)
		_, err = os.ReadDir(name)
		try("folder "+name, err)
	}
	try("write", os.WriteFile("x", nil, 0o600))
	for fd := uintptr(3); fd < 32; fd++ {
		_, err := os.NewFile(fd, "").Write([]byte("x"))
		try("descriptor", err)
	}
	if len(os.Environ()) > 0 {
		got = append(got, "environment")
	}
	if time.Now().Year() > 1970 {
		got = append(got, "calendar")
	}
	fmt.Printf("%q\n", strings.Join(append(got, os.Args...), ","))
}
`

// TestModuleGetsNothing: a module sees only its name and its input: no file, no environment, no calendar time, and no
// descriptor except for the three, which are WASI's only way to the network.
func TestModuleGetsNothing(t *testing.T) {
	t.Parallel()
	p := newTree(t, unhurried, nil)
	p.module(t, "probe", probe)
	p.start(t)
	if got := p.dial(t).call("Syscall.Call", `{"syscall":"os/probe"}`); got != `"probe"` {
		t.Errorf("the module got %s", got)
	}
}

// TestPaths: a name with a slash is looked up below root, relative to its caller's identity if it begins with a dot, and
// nowhere else: never in the kernel, whatever its last part is, and no file can replace a short name.
func TestPaths(t *testing.T) {
	t.Parallel()
	p := newTree(t, unhurried, map[string]string{"agents/a.md": "a"})
	for _, name := range []string{"skills/search", "agents/tool.ts", "ping"} {
		p.put(t, name, saying(`"found"`))
	}
	p.start(t)
	c := p.dial(t)
	call := func(name string) string { return fmt.Sprintf(`{"syscall":%q,"args":["x"]}`, name) }
	for _, name := range []string{"os/skills/search", "os:///skills/search", "skills/search", "./skills/search", "/skills/search", "os/ping"} {
		if got := c.call("Syscall.Call", call(name)); got != `"found"` {
			t.Errorf("%s: got %s", name, got)
		}
	}
	c.refused(404, "os:///tool.ts", "Syscall.Call", call("./tool.ts"))
	c.call("Kernel.Ingest", `{"uri":"agents/a.md"}`)
	if got := c.call("Syscall.Call", call("./tool.ts")); got != `"found"` {
		t.Errorf("a name relative to the identity: got %s", got)
	}
	if got := c.call("Syscall.Call", call("../skills/search")); got != `"found"` {
		t.Errorf("a name relative to the identity: got %s", got)
	}
	c.refused(422, "Invalid input: syscall", "Syscall.Call", call("../../skills/search"))
	if got := c.call("Syscall.Call", call("ping")); got != `{"payload":"x"}` {
		t.Errorf("a file has taken the name of a syscall: %s", got)
	}
	for _, row := range schema.ShortNames() {
		for _, name := range []string{"./" + row.Name, "os/" + row.Name, "agents/" + row.Name, "syscalls/" + row.Name} {
			if name != "os/ping" {
				c.refused(404, "os:///", "Syscall.Call", call(name))
			}
		}
	}
	for _, name := range []string{"Syscall.Ping/", "os/Syscall.Ping", "/Memory.Get"} {
		if a := c.try("Syscall.Call", call(name)); a.code != 404 && a.code != 422 {
			t.Errorf("%s: got %+v", name, a)
		}
	}
}
