// Package config reads the daemon's settings.
package config

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Config is the daemon's settings (PROTOCOL 1). The toml names are the keys of the file.
type Config struct {
	RuntimeDir  string   `toml:"runtime_dir"`
	StateDir    string   `toml:"state_dir"`
	IdleTimeout Duration `toml:"idle_timeout"` // 0: stay
	File        string   `toml:"-"`            // this configuration's path, whether it is there or not; "": none is meant
	// AuthorizedKeys is the file whose keys are let in. Empty: open mode.
	AuthorizedKeys string `toml:"authorized_keys"`
	Log            Log    `toml:"log"`
	Limits         Limits `toml:"limits"`

	Root   string            `toml:"root"`   // an absolute directory or an https: address; "": there is none
	Mounts map[string]string `toml:"mounts"` // what else can be named: prefixes such as os:///lib, with an address or directory each
	Init   string            `toml:"init"`   // the name of what is to be ingested first; the kernel only tells it
	Origin string            `toml:"origin"` // of the operator, and of whom it spawns, as it is written; see Principal

	Ingest Ingest `toml:"ingest"`
	Tools  Tools  `toml:"tools"`
	Code   Code   `toml:"code"`

	Resources map[string]float64 `toml:"resources"` // pools, with their capacity
	Clock     Clock              `toml:"clock"`
	Ipc       Ipc                `toml:"ipc"`
	Journal   Journal            `toml:"journal"`
	Crypto    Crypto             `toml:"crypto"`
	Agents    Agents             `toml:"agents"`
	Approval  Approval           `toml:"approval"`
	HTTP      HTTP               `toml:"http"`
	Blobs     Blobs              `toml:"blobs"`

	Net      Net                 `toml:"net"`
	Upstream map[string]Upstream `toml:"upstream"` // by name

	Prices map[string][]float64 `toml:"prices"` // of models, in US dollars a million tokens; see priceFaults
}

// Ingest is what answers for a resource that is taken in (ABI 8).
type Ingest struct {
	TrustedKeys string `toml:"trusted_keys"` // file of keys whose signatures count; "": trusted_keys beside this configuration
	Proof       bool   `toml:"proof"`        // ask for an integrity or a signature, below root too
	Unpinned    bool   `toml:"unpinned"`     // take from the web what nothing answers for
}

// Tools are the bounds of a user-space syscall.
type Tools struct {
	Programs    bool     `toml:"programs"`     // whether executable files are run too, not modules alone
	Time        Duration `toml:"time"`         // of one call
	MemoryBytes int64    `toml:"memory_bytes"` // of a module
	OutputBytes int64    `toml:"output_bytes"` // of one call
	AtOnce      int      `toml:"at_once"`      // calls that run at the same time, more wait; 0: as many as half of the processors, one at least
}

// Code are the bounds of the code of registered syscalls.
type Code struct {
	Time        Duration `toml:"time"`         // of one call
	MemoryBytes int64    `toml:"memory_bytes"` // of one call
	OutputBytes int64    `toml:"output_bytes"` // of one call
	AtOnce      int      `toml:"at_once"`      // calls, and processes for them, at the same time; 0: as many as processors, two at least
}

// Crypto is what the kernel seals with.
type Crypto struct {
	Identity    string `toml:"identity"` // path of a private key file, or of a public key that the ssh-agent holds; "": any of the agent's
	AgentSocket string `toml:"-"`        // of the ssh-agent, from the environment; "": there is none
}

// Agents is how the programs of agents are treated.
type Agents struct {
	Grace        Duration `toml:"grace"`         // between TERM and KILL
	RestartDelay Duration `toml:"restart_delay"` // before the first restart; each further one doubles it
	Read         []string `toml:"read"`          // absolute paths that every agent may read
	Hide         []string `toml:"hide"`          // absolute paths, or ~/ and a path, that are hidden from every agent
	User         string   `toml:"user"`          // whom a kernel that is user 0 runs agents as; "": as itself

	// Bounds for each agent (PROTOCOL 9).
	Connections           int   `toml:"connections"`              // to the sockets, at a time
	Prologues             int   `toml:"prologues"`                // of those, how many may not have authenticated yet
	InFlightBytes         int64 `toml:"in_flight_bytes"`          // of requests under way and answers not yet taken
	JournalBytesPerSecond int64 `toml:"journal_bytes_per_second"` // sustained
	JournalBurstBytes     int64 `toml:"journal_burst_bytes"`      // at once, after a pause
}

// Journal is how the record is kept.
type Journal struct {
	Sync          Sync     `toml:"sync"`
	SyncInterval  Duration `toml:"sync_interval"`  // with interval: how much a power cut may take
	SnapshotEvery int      `toml:"snapshot_every"` // entries: what a start after a crash replays at most, more or less
}

// Sync is when a command is answered (PROTOCOL 7).
type Sync string

// Always answers a command once it is on disk, Interval once it is written: a power cut then takes what was answered since
// the last fsync. A kernel that is killed loses nothing either way.
const (
	Always   Sync = "always"
	Interval Sync = "interval"
)

// Clock is how the kernel's tick moves.
type Clock struct {
	Interval Duration `toml:"interval"` // of a tick; 0: by hand only
}

// Ipc is what processes may say to each other.
type Ipc struct {
	Mailbox int    `toml:"mailbox"` // most messages of one
	Deny    []Deny `toml:"deny"`    // governance: messages that fit all that a rule names are not delivered
}

// Deny is one rule of governance.
type Deny struct {
	Intent      *string `toml:"intent"`
	SenderPID   *int64  `toml:"sender_pid"`
	ReceiverPID *int64  `toml:"receiver_pid"`
}

// Approval is how somebody is asked before a call, where a rule of the policy says so.
type Approval struct {
	Wait   Duration `toml:"wait"`   // how long a call waits for the answer, before it is refused as pending
	Notify []string `toml:"notify"` // a command, with its arguments, that is run for each question
}

// Log is what is logged, and how.
type Log struct {
	Level  slog.Level `toml:"level"`
	Format string     `toml:"format"` // auto, console or json
}

// Limits bound what clients may send.
type Limits struct {
	LineBytes int `toml:"line_bytes"` // longest line, of kernel.sock; events.sock has no less than its own default
}

// Duration is a span of time, written such as 10m or 1h30m.
type Duration time.Duration

// UnmarshalText reads a duration; a negative one is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil || v < 0 {
		return fmt.Errorf("%q is no duration, such as 10m", text)
	}
	*d = Duration(v)
	return nil
}

// MarshalText writes a duration as it is read.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// Default returns the settings of who sets nothing, for a user whose environment and home are given.
func Default(getenv func(string) string, uid int, home string) Config {
	return Config{
		RuntimeDir: unixsock.RuntimeDir(getenv, uid),
		StateDir:   unixsock.StateDir(getenv, home),
		Log:        Log{Level: slog.LevelInfo, Format: "auto"},
		Limits:     Limits{LineBytes: schema.MaxLine},
		Clock:      Clock{Interval: Duration(time.Second)},
		Ipc:        Ipc{Mailbox: 50},
		Journal:    Journal{Sync: Always, SyncInterval: Duration(100 * time.Millisecond), SnapshotEvery: 200_000},
		Tools:      Tools{Time: Duration(10 * time.Second), MemoryBytes: 64 << 20, OutputBytes: 1 << 20},
		Code:       Code{Time: Duration(time.Second), MemoryBytes: 64 << 20, OutputBytes: 1 << 20},
		Crypto:     Crypto{AgentSocket: getenv("SSH_AUTH_SOCK")},
		HTTP:       HTTP{MaxBodyBytes: 32 << 20},
		Blobs:      Blobs{TTL: Duration(time.Hour), FileBytes: 64 << 20, DirBytes: 1 << 30, DirFiles: 65536},
		Approval:   Approval{Wait: Duration(50 * time.Second)},
		Agents: Agents{
			Grace: Duration(5 * time.Second), RestartDelay: Duration(time.Second),
			Connections: 32, Prologues: 8, InFlightBytes: 4 << 20, JournalBytesPerSecond: 1 << 20, JournalBurstBytes: 8 << 20,
		},
		Net: Net{Each: 128, All: 1024, Idle: Duration(10 * time.Minute)},
	}
}

// maxLineBytes is what a line of the journal, which has 16 MiB, has room for together with an outcome that quotes the line:
// a byte can become five there. A call that does not fit ends the kernel, whoever made it.
const maxLineBytes = 2 << 20

// maxApprovalWait is longer than any client waits.
const maxApprovalWait = time.Hour

// Check reports the first setting that cannot be meant, as an *Error.
func (c *Config) Check() error {
	for _, wrong := range c.faults() {
		return wrong
	}
	return nil
}

func (c *Config) faults() (all []*Error) {
	refuse := func(key, format string, args ...any) {
		all = append(all, &Error{Key: key, Text: fmt.Sprintf(format, args...)})
	}
	if !filepath.IsAbs(c.RuntimeDir) {
		refuse("runtime_dir", "%q must be an absolute path", c.RuntimeDir)
	}
	if !filepath.IsAbs(c.StateDir) {
		refuse("state_dir", "%q must be an absolute path", c.StateDir)
	}
	if c.AuthorizedKeys != "" && !filepath.IsAbs(c.AuthorizedKeys) {
		refuse("authorized_keys", "%q must be an absolute path", c.AuthorizedKeys)
	}
	if c.IdleTimeout < 0 {
		refuse("idle_timeout", "%v must not be negative", time.Duration(c.IdleTimeout))
	}
	switch c.Log.Level {
	case slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError:
	default:
		refuse("log.level", "%v must be debug, info, warn or error", c.Log.Level)
	}
	switch c.Log.Format {
	case "auto", "console", "json":
	default:
		refuse("log.format", "%q must be auto, console or json", c.Log.Format)
	}
	if n := c.Limits.LineBytes; n < schema.MaxLine || n > maxLineBytes {
		refuse("limits.line_bytes", "%d must be from %d to %d: it can raise the limit, not lower it", n, schema.MaxLine, maxLineBytes)
	}
	if c.Journal.Sync != Always && c.Journal.Sync != Interval {
		refuse("journal.sync", "%q must be always or interval", c.Journal.Sync)
	}
	if c.Journal.SyncInterval <= 0 {
		refuse("journal.sync_interval", "%v must be more than nothing", time.Duration(c.Journal.SyncInterval))
	}
	if c.Journal.SnapshotEvery < 1 {
		refuse("journal.snapshot_every", "%d must be at least 1", c.Journal.SnapshotEvery)
	}
	if c.Ipc.Mailbox < 1 {
		refuse("ipc.mailbox", "%d must be at least 1", c.Ipc.Mailbox)
	}
	if path := c.Crypto.Identity; path != "" && !filepath.IsAbs(path) {
		refuse("crypto.identity", "%q must be an absolute path", path)
	}
	for key, paths := range map[string][]string{"agents.read": c.Agents.Read, "agents.hide": c.Agents.Hide} {
		for _, path := range paths {
			if !filepath.IsAbs(path) && !strings.HasPrefix(path, "~/") {
				refuse(key, "%q must be an absolute path, or begin with ~/", path)
			}
		}
	}
	if t := time.Duration(c.Approval.Wait); t > maxApprovalWait {
		refuse("approval.wait", "%v must be at most %v", t, maxApprovalWait)
	}
	if n := c.Approval.Notify; len(n) > 0 && n[0] == "" {
		refuse("approval.notify", "must be a program and its arguments")
	}
	c.agentFaults(refuse)
	c.placeFaults(refuse)
	c.outsideFaults(refuse)
	c.toolFaults(refuse)
	c.netFaults(refuse)
	for name, capacity := range c.Resources {
		if name == "" || !(capacity >= 0) || math.IsInf(capacity, 0) {
			refuse("resources."+name, "%v must be a finite number of at least 0, under a name", capacity)
		}
		if strings.ContainsFunc(name, schema.Hidden) {
			refuse(fmt.Sprintf("resources.%q", name), "the name must not have characters that are not visible")
		}
	}
	return all
}
