package imports

// libraries is the table of dependencies. A library that it does not name is refused.
func libraries() []Library {
	const actor = "github.com/asynkron/protoactor-go"
	shell := []string{"internal/logging"}
	system := []string{"journal", "store", "host", "host/*", "access", "transport/*", "client", "daemon", "cmd/*", "view", "test/...", "internal/..."}
	tests := []string{"test/...", "internal/..."}
	return []Library{
		{Path: actor, Only: []string{"actors"}, Reason: "concurrency is swapped or mended in one place, and meaning is tested without it"},
		{Path: actor + "/remote", Reason: "it lets any peer stop any actor"},
		{Path: actor + "/cluster", Reason: "it stands on remote, which lets any peer stop any actor"},
		{Path: actor + "/persistence", Reason: "the journal is the only truth; a second one would drift"},

		{Path: "modernc.org/sqlite", Only: []string{"store"}, Reason: "projections are the only use; the truth is the journal"},

		{Path: "github.com/go-json-experiment/json", Only: []string{"schema/..."}, Reason: "one decoder, configured once: two would disagree about what is valid"},
		{Path: "github.com/santhosh-tekuri/jsonschema", Only: []string{"schema/...", "kernel/*", "test/*"}, Reason: "what a schema promises is checked by somebody else's reading of it"},
		{Path: "github.com/tidwall/btree", Only: []string{"kernel/*"}, Reason: "ordered state that can be copied at once; what is in it is the domain's"},
		{Path: "github.com/google/jsonschema-go", Only: []string{"schema/..."}, Reason: "schemas and the types that decode stay together"},
		{Path: "github.com/invopop/jsonschema", Only: []string{"schema/..."}, Reason: "schemas and the types that decode stay together"},
		{Path: "github.com/google/uuid", Only: []string{"schema/...", "actors", "client"}, Reason: "ids come to the kernel with the call, or replay would make others"},

		{Path: "golang.org/x/crypto", Only: []string{"access", "kernel/*", "internal/testkit"}, Tests: true, Reason: "what a key proves is decided in one place, sealing in its domain"},

		{Path: "github.com/rs/zerolog", Only: shell, Tests: true, Reason: "layers that decide return errors, the shell around them logs"},
		{Path: "github.com/prometheus/client_golang", Only: []string{"daemon"}, Reason: "metrics are read from the layers, which do not know how they are published"},
		{Path: "github.com/gofrs/flock", Only: []string{"transport/unixsock", "journal"}, Reason: "one lock guards the sockets, one the journal"},
		{Path: "github.com/cenkalti/backoff", Only: []string{"client", "host", "door/mcp/upstream"}, Reason: "those alone try again: for a starting kernel, for a failed program or server"},
		{Path: "github.com/moby/sys/mountinfo", Only: []string{"host/confine"}, Reason: "what a hidden directory is mounted as elsewhere is a question about mounts"},
		{Path: "golang.org/x/sys", Only: system, Tests: true, Reason: "schema and kernel make no system call"},
		{Path: "golang.org/x/net/dns/dnsmessage", Only: []string{"effect/egress", "test/..."}, Tests: true, Reason: "names are answered in one place, inside an agent's network"},
		{Path: "golang.org/x/term", Only: []string{"cmd/*", "internal/logging"}, Reason: "those that write for people alone need to know whether one looks on"},

		{Path: "github.com/spf13/cobra", Only: []string{"cmd/*"}, Reason: "flags are parsed at the door"},
		{Path: "github.com/spf13/pflag", Only: []string{"cmd/*", "daemon/config"}, Reason: "flags are parsed at the door; the daemon has two programs in front of it, which share its"},
		{Path: "github.com/pelletier/go-toml", Only: []string{"daemon/config", "effect/ingest", "door/hostfile"}, Reason: "layers get their settings as values; front matter and a host's configuration are the other text in it"},
		{Path: "github.com/tailscale/hujson", Only: []string{"door/hostfile"}, Reason: "JSON with comments is a host's; it is edited in one place, which keeps what it does not know"},
		{Path: "github.com/modelcontextprotocol/go-sdk", Only: []string{"door/mcp", "door/mcp/upstream", "effect/oauth", "test/..."}, Tests: true, Reason: "MCP is one door's, and so is how its servers have people log in; what a call means is the kernel's"},
		{Path: "golang.org/x/oauth2", Only: []string{"effect/oauth"}, Tests: true, Reason: "tokens are got and renewed in one place"},
		{Path: "github.com/cedar-policy/cedar-go", Only: []string{"policy"}, Reason: "rules are read, checked and evaluated in one place"},
		{Path: "go.yaml.in/yaml/v3", Only: []string{"effect/ingest"}, Reason: "front matter is the only YAML; what it says travels as JSON"},
		{Path: "github.com/tetratelabs/wazero", Only: []string{"effect/tool"}, Reason: "what a module can reach is decided in one place"},

		{Path: "github.com/evanw/esbuild", Only: []string{"effect/code"}, Reason: "code that others bring is read in one place, in a process that can do nothing"},
		{Path: "modernc.org/quickjs", Only: []string{"effect/code"}, Reason: "code that others bring is run in one place, in a process that can do nothing"},

		{Path: "github.com/rogpeppe/go-internal", Only: tests, Tests: true, Reason: "made for tests"},
		{Path: "pgregory.net/rapid", Only: tests, Tests: true, Reason: "made for tests"},
		{Path: "go.uber.org/goleak", Only: tests, Tests: true, Reason: "made for tests"},
		{Path: "github.com/google/go-cmp", Only: tests, Tests: true, Reason: "made for tests; it may panic"},
		{Path: "github.com/anishathalye/porcupine", Only: tests, Tests: true, Reason: "made for tests"},
	}
}

// denied is the table of the standard library.
func denied() []Denied {
	const replay = "the kernel is replayed from its journal, and input or output would be done again"
	return []Denied{
		{Path: "C", In: []string{"..."}, Reason: "every platform is built from every other, without a C compiler"},
		{Path: "encoding/json", In: []string{"..."}, Tests: true, Reason: "it folds case, takes duplicates and mends bad UTF-8, which in a gate is a hole"},
		{Path: "net/http", In: []string{"..."}, But: []string{"effect/fetch", "effect/egress", "effect/oauth", "door/mcp", "door/mcp/upstream"}, Tests: true, Reason: "fetch judges where an agent's requests go, and egress and oauth dial by its judgement; another client would be a way around it; door/mcp is a server, and what it reaches in upstream its agent's sandbox decides"},
		{Path: "net", In: pure(), Tests: true, Reason: replay},
		{Path: "os", In: pure(), Tests: true, Reason: replay},
		{Path: "syscall", In: pure(), Tests: true, Reason: replay},
	}
}
