package config

import (
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
)

// setting is a row of the table of settings.
type setting struct {
	key   string        // in the file
	kind  unstable.Kind // of its value in the file
	at    any           // pointer to the value
	reset func()        // sets the default
	fault func() string // what is wrong with the value, or ""
	name  string        // of its flag; "": none
	usage string        // of its flag
	path  bool          // its flag may be relative to the working directory
	env   string        // the variable that takes precedence over the file; "": none
}

// of returns the row of a value with its default. Its fault is the first bound that the value violates.
func of[T any](key string, at *T, normal T, bounds ...func(T) string) setting {
	return setting{
		key: key, kind: kindOf(at), at: at, reset: func() { *at = normal },
		fault: func() string {
			for _, bound := range bounds {
				if text := bound(*at); text != "" {
					return text
				}
			}
			return ""
		},
	}
}

// kindOf returns the kind of a value in a file.
func kindOf(at any) unstable.Kind {
	switch at.(type) {
	case *int, *int64:
		return unstable.Integer
	case *bool:
		return unstable.Bool
	case *[]string:
		return unstable.Array
	}
	return unstable.String
}

// within returns the row of a value in a list, or under a name that the user chooses.
func within(key string, kind unstable.Kind) setting {
	return setting{key: key, kind: kind, reset: func() {}, fault: func() string { return "" }}
}

func (s setting) flag(name, usage string) setting {
	s.name, s.usage = name, usage
	return s
}

func (s setting) pathFlag(name, usage string) setting {
	s.path = true
	return s.flag(name, usage)
}

func (s setting) from(variable string) setting {
	s.env = variable
	return s
}

// maxLineBytes is the longest line that fits a journal line of 16 MiB together with an outcome that quotes it, in which one
// byte can become five. A call that does not fit would end the kernel.
const maxLineBytes = 2 << 20

// Upper bounds of a tool's settings: its answer must fit a journal entry, and a module uses the kernel's memory.
const (
	maxToolOutput = 4 << 20
	maxToolMemory = 4 << 30
)

// settings is the table of all settings: keys, flags, variables, defaults and bounds. The two directories get their
// defaults from Default.
func (c *Config) settings() []setting {
	const (
		second  = Duration(time.Second)
		journal = int64(64 << 10) // minimum of the journal's bounds
	)
	absolute := must(filepath.IsAbs, "%q must be an absolute path")
	optional := must(func(path string) bool { return path == "" || filepath.IsAbs(path) }, "%q must be an absolute path")
	visible := each(func(path string) bool { return filepath.IsAbs(path) || strings.HasPrefix(path, "~/") },
		"%q must be an absolute path, or begin with ~/")
	return []setting{
		of("runtime_dir", &c.RuntimeDir, "", absolute).from("PWOS_RUNTIME_DIR").
			pathFlag("runtime-dir", "directory of the sockets (default "+c.RuntimeDir+")"),
		of("state_dir", &c.StateDir, "", absolute).from("PWOS_STATE_DIR").
			pathFlag("state-dir", "directory of the state that outlives a restart (default "+c.StateDir+")"),
		of("root", &c.Root, "").
			pathFlag("root", "root of os:///…: a directory, or an https: address (default: none)"),
		of("origin", &c.Origin, "").
			flag("origin", "the operator's origin, which separates stored data: an address, or a name (default: the root, or https://pwos.local/)"),
		of("authorized_keys", &c.AuthorizedKeys, "", optional).
			pathFlag("authorized-keys", "admit only the keys in this file (default: authorized_keys beside the configuration, if it exists)"),
		of("idle_timeout", &c.IdleTimeout, 0, must(func(d Duration) bool { return d >= 0 }, "%v must not be negative")).
			flag("idle-timeout", "end after this long without a connection, such as 10m (default: never)"),
		of("init", &c.Init, ""),
		of("journal.sync", &c.Journal.Sync, Always, must(in(Always, Interval), "%q must be always or interval")).
			flag("sync", "always: answer a command once it is on disk; interval: once it is written (default always)"),
		of("journal.sync_interval", &c.Journal.SyncInterval, second/10, must(positive, "%v must be greater than 0")),
		of("journal.snapshot_every", &c.Journal.SnapshotEvery, 200_000, atLeast(1)),
		of("log.level", &c.Log.Level, slog.LevelInfo, must(in(slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError), "%v must be debug, info, warn or error")).
			flag("log-level", "debug, info, warn or error (default info)"),
		of("log.format", &c.Log.Format, "auto", must(in("auto", "console", "json"), "%q must be auto, console or json")).
			flag("log-format", "auto, console or json (default auto: console at a terminal)"),
		of("limits.line_bytes", &c.Limits.LineBytes, schema.MaxLine,
			between(schema.MaxLine, maxLineBytes, ": it can raise the limit, but not lower it")),

		of("listen.tls", &c.Listen.TLS, "", must(address, "%q must be HOST:PORT, such as 0.0.0.0:7443")).
			flag("listen-tls", "serve clients on other machines at this HOST:PORT, if there are authorized keys (default: do not)"),

		of("ingest.trusted_keys", &c.Ingest.TrustedKeys, "", optional),
		of("ingest.proof", &c.Ingest.Proof, false),
		of("ingest.unpinned", &c.Ingest.Unpinned, false),
		of("tools.programs", &c.Tools.Programs, false),
		of("tools.time", &c.Tools.Time, 10*second, must(positive, "must be greater than 0")),
		of("tools.memory_bytes", &c.Tools.MemoryBytes, 64<<20, between[int64](1<<16, maxToolMemory)),
		of("tools.output_bytes", &c.Tools.OutputBytes, 1<<20, between[int64](1, maxToolOutput)),
		of("tools.at_once", &c.Tools.AtOnce, 0, between(0, 1024)),
		of("code.time", &c.Code.Time, second, must(func(d Duration) bool { return positive(d) && d <= 60*second }, "must be greater than 0, and at most 1m0s")),
		of("code.memory_bytes", &c.Code.MemoryBytes, 64<<20, between[int64](4<<20, maxToolMemory)), // with less no runtime can start
		of("code.output_bytes", &c.Code.OutputBytes, 1<<20, between[int64](1, maxToolOutput)),
		of("code.at_once", &c.Code.AtOnce, 0, between(0, 64)),

		of("clock.interval", &c.Clock.Interval, second),
		of("ipc.mailbox", &c.Ipc.Mailbox, 50, atLeast(1)),
		within("ipc.deny.intent", unstable.String),
		within("ipc.deny.sender_pid", unstable.Integer),
		within("ipc.deny.receiver_pid", unstable.Integer),
		of("cluster.name", &c.Cluster.Name, ""),
		of("cluster.bus", &c.Cluster.Bus, ""),
		of("cluster.authority", &c.Cluster.Authority, "", optional),
		of("cluster.members", &c.Cluster.Members, "", optional),
		of("cluster.acknowledge", &c.Cluster.Acknowledge, Disk, must(in(Disk, Quorum), "%q must be disk or quorum")),
		of("cluster.replicas", &c.Cluster.Replicas, 1, between(1, 5)),
		of("cluster.accept_unsynced", &c.Cluster.AcceptUnsynced, false).
			flag("accept-unsynced", "let answers wait for a bus that does not state that it syncs each write (cluster.acknowledge = quorum)"),
		of("cluster.standby", &c.Cluster.Standby, false),
		of("cluster.lease", &c.Cluster.Lease, 15*second, must(func(d Duration) bool { return d >= second }, "%v must be at least 1s")),
		of("crypto.identity", &c.Crypto.Identity, "", optional),
		of("approval.wait", &c.Approval.Wait, 50*second, must(func(d Duration) bool { return d <= 3600*second }, "%v must be at most 1h0m0s")), // longer than any client waits
		of("approval.notify", &c.Approval.Notify, nil, must(func(n []string) bool { return len(n) == 0 || n[0] != "" }, "must be a program and its arguments")),

		of("record.steps", &c.Record.Steps, On, must(in(On, Off), "%q must be on or off")),
		of("record.prompts", &c.Record.Prompts, On, must(in(On, Off), "%q must be on or off")),
		of("steps.keep", &c.Steps.Keep, 14*24*3600*second, atLeast(60*second)),
		of("steps.keep_bytes", &c.Steps.KeepBytes, 4<<30, atLeast[int64](1<<20)),
		of("steps.max_files", &c.Steps.MaxFiles, 1_000_000, atLeast[int64](1)),
		of("steps.max_bytes", &c.Steps.MaxBytes, 16<<30, atLeast[int64](1<<20)),
		of("steps.file_bytes", &c.Steps.FileBytes, 1<<30, atLeast[int64](1)),
		of("terminal.attention", &c.Terminal.Attention, "ctrl-]", must(attention, `%q must be off, or ctrl- with a letter other than h, i, j and m, or one of \ ] ^ _`)),
		of("terminal.notify", &c.Terminal.Notify, On, must(in(On, Off), "%q must be on or off")),
		of("record.terminals", &c.Record.Terminals, On, must(in(On, Off), "%q must be on or off")),
		of("record.execs", &c.Record.Execs, On, must(in(On, Off), "%q must be on or off")),

		of("agents.grace", &c.Agents.Grace, 5*second),
		of("agents.restart_delay", &c.Agents.RestartDelay, second),
		of("agents.read", &c.Agents.Read, nil, visible),
		of("agents.hide", &c.Agents.Hide, nil, visible),
		of("agents.user", &c.Agents.User, ""),
		of("agents.connections", &c.Agents.Connections, 32, atLeast(1)),
		of("agents.prologues", &c.Agents.Prologues, 8, between(1, access.AgentsWaiting)),
		of("agents.in_flight_bytes", &c.Agents.InFlightBytes, 4<<20, atLeast[int64](maxLineBytes, ", which the longest line may have")),
		of("agents.journal_bytes_per_second", &c.Agents.JournalBytesPerSecond, 1<<20, atLeast(journal)),
		of("agents.journal_burst_bytes", &c.Agents.JournalBurstBytes, 8<<20, atLeast(journal)),
		of("agents.disk_bytes", &c.Agents.DiskBytes, 32<<30, atLeast[int64](1<<20)),

		of("http.allow", &c.HTTP.Allow, nil, each(func(prefix string) bool {
			_, err := netip.ParsePrefix(prefix)
			return err == nil
		}, "%q must be a prefix of addresses such as 10.1.0.0/16")),
		of("http.allow_hosts", &c.HTTP.AllowHosts, nil),
		of("http.ca_file", &c.HTTP.CAFile, "", optional),
		of("http.max_body_bytes", &c.HTTP.MaxBodyBytes, 32<<20, atLeast[int64](1)),
		of("blobs.ttl", &c.Blobs.TTL, 3600*second, atLeast(second)),
		of("blobs.file_bytes", &c.Blobs.FileBytes, 64<<20, atLeast[int64](1)),
		of("blobs.dir_bytes", &c.Blobs.DirBytes, 1<<30, atLeast[int64](1)),
		of("blobs.dir_files", &c.Blobs.DirFiles, 65536, atLeast(1)),
		of("blobs.agent_bytes", &c.Blobs.Share, 128<<20, atLeast[int64](1<<16)),
		of("snapshots.keep", &c.Snapshots.Keep, 0),
		of("snapshots.keep_for", &c.Snapshots.KeepFor, 0),
		of("net.connections_each", &c.Net.Each, 128, atLeast(1)),
		of("net.connections", &c.Net.All, 1024, atLeast(1)),
		of("net.idle", &c.Net.Idle, 600*second, atLeast(second)),

		within(upstreams+anyName+".url", unstable.String),
		within(upstreams+anyName+".header", unstable.String),
		within(upstreams+anyName+".from", unstable.String),
		within(upstreams+anyName+".allow", unstable.Array),
		within(upstreams+anyName+".headers", unstable.Array),
		within(upstreams+anyName+".env", unstable.String),
		within(upstreams+anyName+".intercept", unstable.Bool),
		within(pools+anyName, unstable.Float),
		within(priced+"<model>", unstable.Array),
		within(mounts+"<prefix>", unstable.String),
	}
}

// must returns a bound with a message, in which %v or %q stands for the value.
func must[T any](ok func(T) bool, text string) func(T) string {
	return func(v T) string {
		switch {
		case ok(v):
			return ""
		case strings.HasPrefix(text, "%"):
			return fmt.Sprintf(text, v)
		}
		return text
	}
}

// attention reports whether text names a key that terminals send as a control character of its own, or none.
func attention(text string) bool {
	letter, ok := strings.CutPrefix(text, "ctrl-")
	return text == "off" || ok && len(letter) == 1 && strings.Contains(`abcdefgklnopqrstuvwxyz\]^_`, letter)
}

// address reports whether text is empty or HOST:PORT; the port is a number, 0 for any, and the host may be missing.
func address(text string) bool {
	_, port, err := net.SplitHostPort(text)
	_, portErr := strconv.ParseUint(port, 10, 16)
	return text == "" || err == nil && portErr == nil
}

func positive(d Duration) bool { return d > 0 }

func in[T comparable](values ...T) func(T) bool {
	return func(v T) bool { return slices.Contains(values, v) }
}

func atLeast[T int | int64 | Duration](least T, why ...string) func(T) string {
	return must(func(v T) bool { return v >= least }, fmt.Sprintf("%%v must be at least %v", least)+strings.Join(why, ""))
}

func between[T int | int64](least, most T, why ...string) func(T) string {
	return must(func(v T) bool { return v >= least && v <= most }, fmt.Sprintf("%%v must be from %v to %v", least, most)+strings.Join(why, ""))
}

// each bounds the values in a list.
func each(ok func(string) bool, text string) func([]string) string {
	return func(values []string) string {
		for _, v := range values {
			if !ok(v) {
				return fmt.Sprintf(text, v)
			}
		}
		return ""
	}
}
