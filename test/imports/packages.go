package imports

// packages is the table of layers, bottom up.
func packages() []Package {
	return []Package{
		{
			Path:   "schema",
			May:    []string{"schema/*"},
			Reason: "the wire contract stands below everything; what it imported could not use it",
		},
		{
			Path:   "schema/fault",
			Tests:  []string{"schema"},
			Reason: "every layer reports errors by it, those below the wire contract too",
		},
		{
			Path:   "schema/jsontype",
			May:    []string{"schema/fault"},
			Tests:  []string{"schema/..."},
			Reason: "it decodes the data types of any layer and has the one JSON grammar, so it knows no message and no syscall",
		},
		{
			Path:   "schema/jsonschema",
			May:    []string{"schema/fault", "schema/jsontype"},
			Reason: "what others say of data is checked apart from what the wire contract says of it",
		},
		{
			Path:   "journal",
			May:    []string{"schema/...", "journal/*", "internal/lockfile"},
			Reason: "a journal must be readable and verifiable without a kernel",
		},
		{
			Path:   "journal/*",
			May:    []string{"schema/...", "journal", "journal/*"},
			Reason: "a part of the journal needs no more than the journal does",
		},
		{
			Path:   "kernel",
			May:    []string{"schema/..."},
			Reason: "replay gives the same state only if nothing but the journal's entries decides it",
		},
		{
			Path:   "kernel/domaintest",
			May:    []string{"schema/...", "kernel"},
			Reason: "every domain's tests are driven by it, so it knows none of them",
		},
		{
			Path:   "kernel/*",
			May:    []string{"schema/...", "kernel"},
			Tests:  []string{"kernel/domaintest"},
			Reason: "a domain's state is a fold over its own entries; of another domain it asks by a command",
		},
		{
			Path:   "store",
			May:    []string{"schema/...", "journal", "journal/*", "internal/lockfile"},
			Reason: "a projection follows the journal and can be deleted, so nothing may hang on a domain's code",
		},
		{
			Path:   "host",
			May:    []string{"schema/...", "host/confine"},
			Reason: "running a program is an effect; what it means for the kernel is decided above",
		},
		{
			Path:   "host/programs",
			May:    []string{"schema/...", "access", "host", "transport/*"},
			Reason: "a program's channel is a connection that ends with it; what comes in by it is the kernel's to judge",
		},
		{
			Path:   "host/confine",
			Reason: "what a program may reach is decided and enforced apart from how it is started, watched and ended",
		},
		{
			Path:   "access",
			May:    []string{"schema/...", "internal/lockfile"},
			Reason: "who is on a connection is decided apart from what carries it, and from what that caller may do",
		},
		{
			Path:   "access/keyed",
			May:    []string{"schema/...", "kernel", "kernel/*", "access", "uri"},
			Reason: "whose key lets whom in, and as which process, is decided before the kernel hears of a connection; calls it makes as any operator",
		},
		{
			Path:   "blob",
			May:    []string{"schema/...", "internal/..."},
			Reason: "files of data know their origin and their reference, not which syscall they belong to",
		},
		{
			Path:   "uri",
			May:    []string{"schema/fault"},
			Reason: "what a name means hangs on nothing but the name and on what is mounted",
		},
		{
			Path:   "rootfs",
			May:    []string{"schema/fault", "uri"},
			Reason: "opening a file knows where it lies, not what it is for",
		},
		{
			Path:   "effect/fetch",
			May:    []string{"schema/...", "kernel", "blob"},
			Reason: "an exchange over the network is an effect; who may have one is read from its token, and who journals it is above",
		},
		{
			Path:   "effect/egress",
			May:    []string{"schema/...", "kernel", "effect/fetch"},
			Tests:  []string{"kernel/*"},
			Reason: "it carries an agent's traffic; what the agent may reach is read from its token, and who journals it is above",
		},
		{
			Path:   "effect/oauth",
			May:    []string{"schema/...", "effect/fetch"},
			Reason: "it gets and renews tokens; where they are kept, and which requests bear them, is decided above",
		},
		{
			Path:   "effect/vault",
			May:    []string{"schema/...", "kernel/*", "access"},
			Reason: "secrets are opened in one place; who may have them is decided above",
		},
		{
			Path:   "effect/network",
			May:    []string{"schema/...", "effect/egress", "effect/oauth", "effect/vault"},
			Reason: "it says what an agent's network has, which egress carries; settings come to it as values",
		},
		{
			Path:   "effect/notify",
			May:    []string{"schema/...", "kernel/*"},
			Reason: "a command that tells people is an effect; what is asked is decided by the kernel",
		},
		{
			Path:   "effect/ingest",
			May:    []string{"schema/...", "kernel", "kernel/*", "uri", "rootfs", "access", "effect/fetch"},
			Reason: "it reads what the process domain asks for and returns a value; what a process becomes by it is decided there",
		},
		{
			Path:   "effect/jobs",
			May:    []string{"schema/...", "kernel", "kernel/*"},
			Reason: "it makes calls when they are due; what is due is the state's of kernel/job, and whether a call may be made is the gate's to say",
		},
		{
			Path:   "effect/tool",
			May:    []string{"schema/...", "kernel", "kernel/*", "uri", "rootfs", "host"},
			Reason: "running a tool is an effect; the process domain says what is run, and the caller's token whether it may",
		},
		{
			Path:   "policy",
			May:    []string{"schema/...", "kernel"},
			Reason: "what rules say of a call follows from the call and the files; who asks, and what a journal holds, is above",
		},
		{
			Path:   "effect/code",
			May:    []string{"schema/...", "kernel", "host"},
			Reason: "running a handler is an effect; what is registered, and who may call it, is decided by the kernel",
		},
		{
			Path:   "transport/unixsock",
			May:    []string{"schema/...", "access", "transport/poll", "internal/..."},
			Reason: "the socket carries lines; a client links it without a kernel",
		},
		{
			Path:   "transport/poll",
			Reason: "waiting for streams knows nothing of what they carry; every loop can be built on it",
		},
		{
			Path:   "transport/systemd",
			May:    []string{"internal/..."},
			Reason: "the service manager's protocol knows of file descriptors and states, not of messages",
		},
		{
			Path:   "actors",
			May:    []string{"schema/...", "kernel", "kernel/*", "journal", "journal/*", "store", "host", "transport/poll", "internal/..."},
			Reason: "the concurrency shell waits for streams but serves any transport and is driven by tests without one",
		},
		{
			Path:   "client",
			May:    []string{"schema/...", "transport/unixsock", "access", "internal/..."},
			Tests:  []string{"daemon", "daemon/config"},
			Reason: "a Go program that talks to a kernel must not link one",
		},
		{
			Path:   "door",
			May:    []string{"schema/...", "client"},
			Tests:  []string{"daemon", "daemon/config"},
			Reason: "a door is a client like any other; what its process may do is decided by the kernel",
		},
		{
			Path:   "door/hostfile",
			Reason: "a host's configuration is text to be kept; what is put into it is known above",
		},
		{
			Path:   "door/hook",
			May:    []string{"schema/..."},
			Reason: "what a host asks is read without asking anybody",
		},
		{
			Path:   "door/mcp",
			May:    []string{"schema/...", "client", "door"},
			Tests:  []string{"daemon", "daemon/config"},
			Reason: "a door is a client like any other; what its process may do is decided by the kernel",
		},
		{
			Path:   "door/mcp/upstream",
			May:    []string{"schema/...", "client"},
			Tests:  []string{"door", "door/mcp", "daemon", "daemon/config"},
			Reason: "a server's tools are provided as any connection provides syscalls; who may call them is decided by the kernel",
		},
		{
			Path:   "sdk",
			May:    []string{"schema/..."},
			Tests:  []string{"client", "daemon", "daemon/config"},
			Reason: "a client is made of what a kernel tells of its syscalls, whoever has asked it",
		},
		{
			Path: "daemon",
			May: []string{
				"schema/...", "journal", "journal/*", "kernel", "kernel/*", "store", "host", "access", "uri", "rootfs", "blob",
				"access/*", "host/*", "effect/*", "policy", "transport/*", "actors", "daemon/*", "internal/...",
			},
			Tests:  []string{"client"},
			Reason: "the one wiring point stands above every layer and below every command",
		},
		{
			Path: "daemon/state",
			May: []string{
				"schema/...", "journal", "kernel", "kernel/*", "store", "host", "access", "uri", "rootfs", "effect/*", "actors", "daemon/config",
			},
			Reason: "what a start makes of the journal is made again where a running kernel has lost some of it, and nothing serves yet",
		},
		{
			Path:   "daemon/config",
			May:    []string{"schema/...", "access", "transport/unixsock", "uri"},
			Reason: "settings are values that the wiring hands on; they know defaults and bounds, not what is done with them",
		},
		{
			Path:   "view",
			May:    []string{"schema/...", "policy"},
			Reason: "what people see is made of answers, for any front end: no connection, no command line; policy writes the rules of what was learned",
		},
		{
			Path:   "examples",
			Tests:  []string{"schema/..."},
			Reason: "examples are for readers; a program may carry them, they carry no program",
		},
		{
			Path:   "examples/...",
			May:    []string{"schema/...", "client"},
			Reason: "an agent is told apart from others by nothing but what it says on its channel",
		},
		{
			Path:   "internal/lockfile",
			Reason: "every lock of the tree is taken and released the same way, whatever it protects",
		},
		{
			Path:   "internal/logging",
			Reason: "how lines are written is known in one place; what they say, where they are logged",
		},
		{
			Path:   "internal/bench",
			May:    []string{"schema/...", "access", "transport/unixsock", "client"},
			Reason: "the load comes from outside, over the wire, as any client's",
		},
		{
			Path:   "cmd/pwosd",
			May:    []string{"daemon"},
			Reason: "the daemon's main starts the wiring; what it did itself no test could start",
		},
		{
			Path:   "cmd/pwos",
			May:    []string{"client", "schema/...", "access", "journal", "journal/*", "daemon", "daemon/config", "door", "door/...", "effect/oauth", "policy", "sdk", "view", "examples", "internal/..."},
			Reason: "a verb speaks to the kernel over the wire, as any other client; journal verifies offline, policy checks offline, access is for the user's own keys, daemon is for --mode=daemon, daemon/config for profiles; a login is a person's act, with a browser, so effect/oauth makes it there",
		},
		{
			Path:     "internal/testkit",
			ForTests: true,
			Reason:   "every test uses it, those of the lowest layer too",
		},
		{
			Path:     "internal/testkit/testkernel",
			May:      []string{"schema/...", "client", "daemon", "daemon/config", "internal/testkit"},
			ForTests: true,
			Reason:   "a kernel in the test's process is the real one, of the wiring",
		},
		{
			Path:   "internal/...",
			May:    []string{"schema/...", "internal/..."},
			Reason: "a helper that knows a layer belongs into that layer",
		},
		{
			Path:     "test/...",
			May:      []string{"..."},
			ForTests: true,
			Reason:   "tests from outside may look at anything; nothing but tests imports them",
		},
	}
}

// pure lists the state machines, which are replayed.
func pure() []string { return []string{"kernel", "kernel/*"} }
