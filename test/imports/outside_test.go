package imports_test

import "testing"

// TestOutside shows which packages may import libraries and packages of the standard library.
func TestOutside(t *testing.T) {
	t.Parallel()
	const actor = "github.com/asynkron/protoactor-go"
	for _, c := range []struct {
		dir, path string
		code      bool // allowed in the package itself
		test      bool // allowed in its test files
	}{
		{"actors", actor + "/actor", true, true},
		{"daemon", actor + "/actor", false, false},
		{"kernel/memory", actor + "/actor", false, false},
		{"test/load", actor + "/actor", false, false},
		{"actors", actor + "/remote", false, false},
		{"actors", actor + "/cluster", false, false},
		{"actors", actor + "/cluster/identitylookup", false, false},
		{"actors", actor + "/persistence", false, false},
		{"index", "modernc.org/sqlite", true, true},
		{"index", "modernc.org/sqlite/lib", true, true},
		{"journal", "modernc.org/sqlite", false, false},
		{"schema", "github.com/go-json-experiment/json/jsontext", true, true},
		{"kernel", "github.com/go-json-experiment/json", false, false},
		{"cmd/pwos", "github.com/go-json-experiment/json", false, false},
		{"schema", "github.com/santhosh-tekuri/jsonschema/v6", true, true},
		{"actors", "github.com/santhosh-tekuri/jsonschema/v6", false, false},
		{"kernel/ipc", "github.com/google/uuid", false, false},
		{"internal/logging", "github.com/rs/zerolog", true, true},
		{"kernel", "github.com/rs/zerolog", false, true},
		{"kernel", "golang.org/x/sys/unix", false, true},
		{"daemon/config", "github.com/pelletier/go-toml/v2", true, true},
		{"client", "github.com/spf13/cobra", false, false},
		{"view", "github.com/spf13/cobra", false, false},
		{"view", "github.com/spf13/pflag", false, false},
		{"client", "go.uber.org/goleak", false, true},
		{"test/crash", "pgregory.net/rapid", true, true},
		{"client", "example.com/unheard/of", false, false},
		{"client", "github.com/rs/zerologue", false, false},

		{"schema", "encoding/json", false, true},
		{"cmd/pwos", "encoding/json", false, true},
		{"test/crash", "encoding/json", false, true},
		{"schema", "encoding/json/jsontext", false, true},
		{"schema", "encoding/base64", true, true},
		{"kernel", "net", false, true},
		{"kernel/memory", "net/http", false, true},
		{"kernel/memory", "os/exec", false, true},
		{"effect/fetch", "net/http", true, true},
		{"daemon", "net/http", false, true},
		{"client", "net/http/httputil", false, true},
		{"blob", "net", true, true},
		{"kernel", "syscall", false, true},
		{"kernel", "sync/atomic", true, true},
		{"host", "os/exec", true, true},
		{"host", "C", false, false},
	} {
		t.Run(c.dir+" "+c.path, func(t *testing.T) {
			t.Parallel()
			code, test := c.dir+"/a.go", c.dir+"/a_test.go"
			tree := load(t, map[string]string{code: source(c.dir, c.path)})
			if c.code {
				none(t, tree)
			} else {
				only(t, tree, code, ":4:", c.path)
			}
			tree = load(t, map[string]string{code: source(c.dir), test: testSource(c.dir, c.path)})
			if c.test {
				none(t, tree)
			} else {
				only(t, tree, test, ":3:", c.path)
			}
		})
	}
}

// TestUnknownLibrary: the message says what to do.
func TestUnknownLibrary(t *testing.T) {
	t.Parallel()
	tree := load(t, map[string]string{"client/a.go": source("client", "example.com/x")})
	only(t, tree, "client/a.go", "add a rule", "rules.txt")
}
