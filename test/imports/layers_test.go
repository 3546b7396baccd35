package imports_test

import "testing"

// TestLayers tries for each row of the table an import that it allows and one that it refuses.
func TestLayers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ from, may, never string }{
		{"schema", "schema/fault", "internal/clock"},
		{"schema/fault", "", "schema"},
		{"journal", "schema", "kernel"},
		{"journal", "journal/segment", "actors"},
		{"journal/segment", "journal", "transport/unixsock"},
		{"kernel", "schema", "journal"},
		{"kernel", "schema", "kernel/memory"},
		{"kernel", "schema", "internal/clock"},
		{"kernel/memory", "kernel", "kernel/process"},
		{"kernel/memory", "schema", "index"},
		{"index", "journal", "kernel/memory"},
		{"index", "schema", "actors"},
		{"host", "schema", "kernel"},
		{"access", "schema", "actors"},
		{"effect/fetch", "blob", "actors"},
		{"blob", "schema", "effect/fetch"},
		{"uri", "schema/fault", "schema"},
		{"rootfs", "uri", "schema"},
		{"effect/ingest", "rootfs", "host"},
		{"effect/ingest", "access", "actors"},
		{"effect/tool", "host", "effect/ingest"},
		{"effect/tool", "uri", "actors"},
		{"transport/unixsock", "access", "kernel"},
		{"transport/unixsock", "schema", "actors"},
		{"transport/systemd", "internal/clock", "schema"},
		{"actors", "kernel/memory", "transport/unixsock"},
		{"actors", "host", "client"},
		{"client", "transport/unixsock", "kernel"},
		{"client", "access", "journal"},
		{"client", "schema", "daemon"},
		{"daemon", "actors", "client"},
		{"daemon", "transport/systemd", "cmd/pwos"},
		{"cmd/pwosd", "daemon", "schema"},
		{"cmd/pwosd", "daemon", "internal/clock"},
		{"cmd/pwos", "client", "actors"},
		{"cmd/pwos", "journal", "index"},
		{"cmd/pwos", "daemon", "host"},
		{"view", "schema", "client"},
		{"cmd/pwos", "view", "kernel"},
		{"internal/clock", "schema", "kernel"},
		{"internal/testkit", "", "schema"},
		{"internal/testkit/testkernel", "daemon", "kernel"},
		{"cmd/pwos", "internal/clock", "internal/testkit"},
		{"daemon", "internal/clock", "internal/testkit/testkernel"},
		{"test/crash", "daemon", ""},
		{"daemon", "journal", "test/crash"},
	} {
		t.Run(c.from+" "+c.may+" "+c.never, func(t *testing.T) {
			t.Parallel()
			file := c.from + "/a.go"
			if c.may != "" {
				none(t, load(t, map[string]string{file: source(c.from, module+"/"+c.may)}))
			}
			if c.never != "" {
				only(t, load(t, map[string]string{file: source(c.from, module+"/"+c.never)}),
					file, ":4:", module+"/"+c.never, c.from[:min(4, len(c.from))])
			}
		})
	}
}

// TestRootIsOurs: an import of the module's own root is not one of a library.
func TestRootIsOurs(t *testing.T) {
	t.Parallel()
	only(t, load(t, map[string]string{"index/a.go": source("index", module)}), "index/a.go", "may import of ours")
}

// TestTagsHideNothing: the rules apply to a file that this platform does not build.
func TestTagsHideNothing(t *testing.T) {
	t.Parallel()
	files := map[string]string{"host/a_windows.go": "//go:build never\n\n" + source("host", module+"/actors")}
	only(t, load(t, files), "host/a_windows.go", ":6:")
}

// TestUnnamedPackage: a package without a row is one violation, however many files it has.
func TestUnnamedPackage(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"extra", "transport/tcp", "kernel/memory/deep", "cmd/other", "actors/sub"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{
				dir + "/a.go":      source(dir, module+"/actors"),
				dir + "/a_test.go": testSource(dir, module+"/client"),
			}
			only(t, load(t, files), dir, "add a rule", "rules.txt")
		})
	}
	only(t, load(t, map[string]string{"a.go": source("m")}), ".", "add a rule")
}

// TestTestFiles: test files may import more than their package.
func TestTestFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dir, path string
		allowed   bool
	}{
		{"client", "client", true},
		{"client", "daemon", true},
		{"client", "kernel", false},
		{"daemon", "client", true},
		{"schema", "internal/clock", true},
		{"schema", "internal/testkit", true},
		{"kernel/memory", "test/model", true},
		{"kernel/memory", "kernel/process", false},
		{"index", "daemon", false},
	} {
		t.Run(c.dir+" "+c.path, func(t *testing.T) {
			t.Parallel()
			file := c.dir + "/a_test.go"
			tree := load(t, map[string]string{
				c.dir + "/doc.go": source(c.dir),
				file:              testSource(c.dir, module+"/"+c.path),
			})
			if c.allowed {
				none(t, tree)
			} else {
				only(t, tree, file, module+"/"+c.path)
			}
		})
	}
}
