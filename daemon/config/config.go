// Package config reads the daemon's settings.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

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

	Resources map[string]float64 `toml:"resources"` // pools, with their capacity
	Clock     Clock              `toml:"clock"`
	Ipc       Ipc                `toml:"ipc"`
	Journal   Journal            `toml:"journal"`
	Crypto    Crypto             `toml:"crypto"`
	Agents    Agents             `toml:"agents"`
	HTTP      HTTP               `toml:"http"`
	Blobs     Blobs              `toml:"blobs"`
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

// Crypto is what the kernel seals with.
type Crypto struct {
	Identity    string `toml:"identity"` // path of a private key file, or of a public key that the ssh-agent holds; "": any of the agent's
	AgentSocket string `toml:"-"`        // of the ssh-agent, from the environment; "": there is none
}

// Agents is how the programs of agents are treated.
type Agents struct {
	Grace        Duration `toml:"grace"`         // between TERM and KILL
	RestartDelay Duration `toml:"restart_delay"` // before the first restart; each further one doubles it
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
		Crypto:     Crypto{AgentSocket: getenv("SSH_AUTH_SOCK")},
		HTTP:       HTTP{MaxBodyBytes: 32 << 20},
		Blobs:      Blobs{TTL: Duration(time.Hour), FileBytes: 64 << 20, DirBytes: 1 << 30, DirFiles: 65536},
		Agents:     Agents{Grace: Duration(5 * time.Second), RestartDelay: Duration(time.Second)},
	}
}

// Error is a fault of the configuration, with the way out.
type Error struct {
	File string // "" where it is not from a file
	Line int    // of the text, from 1; 0 where it is not from a text
	Key  string // "" where no single setting is at fault
	Text string
}

// Error names file, line, setting and what is wrong with it.
func (e *Error) Error() string {
	var at string
	switch {
	case e.File != "" && e.Line > 0:
		at = fmt.Sprintf("configuration %s:%d: ", e.File, e.Line)
	case e.File != "":
		at = fmt.Sprintf("configuration %s: ", e.File)
	case e.Line > 0:
		at = fmt.Sprintf("line %d: ", e.Line)
	}
	if e.Key != "" {
		at += e.Key + ": "
	}
	return at + e.Text
}

// Load reads the file at path over c. A file that is not there sets nothing, unless must says that somebody named it. The
// environment comes before the file: a directory that a variable names stays.
func (c *Config) Load(path string, must bool, getenv func(string) string) error {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && !must {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	before := *c
	if fault := c.parse(text); fault != nil {
		fault.File = path
		return fault
	}
	if getenv("PWOS_RUNTIME_DIR") != "" {
		c.RuntimeDir = before.RuntimeDir
	}
	if getenv("PWOS_STATE_DIR") != "" {
		c.StateDir = before.StateDir
	}
	return nil
}

// Parse reads TOML over c, all of it or, with an *Error, nothing. What it does not know is an error, which says where it
// stands and what there is.
func (c *Config) Parse(text []byte) error {
	if fault := c.parse(text); fault != nil {
		return fault
	}
	return nil
}

// Set sets the one setting key, which takes a string, as a file would. Its error is an *Error without a line.
func (c *Config) Set(key, value string) error {
	var tree any = value
	words := strings.Split(key, ".")
	for _, word := range slices.Backward(words) {
		tree = map[string]any{word: tree}
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return &Error{Key: key, Text: err.Error()}
	}
	if fault := c.parse(text); fault != nil {
		fault.Line = 0
		return fault
	}
	return nil
}

func (c *Config) parse(text []byte) *Error {
	next := *c
	if err := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields().Decode(&next); err != nil {
		return explain(err)
	}
	lines, fault := inspect(text)
	if fault != nil {
		return fault
	}
	for _, fault := range next.faults() {
		if line, ok := lines[fault.Key]; ok { // else it is not this text's
			fault.Line = line
			return fault
		}
	}
	*c = next
	return nil
}

// explain puts a place to what the TOML library found.
func explain(err error) *Error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		line, _ := first.Position()
		return noSuch(join(first.Key()), line)
	}
	fault := &Error{Text: strings.TrimPrefix(err.Error(), "toml: ")}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		fault.Line, _ = at.Position()
		fault.Key = join(at.Key())
	}
	if strings.HasPrefix(fault.Text, "cannot decode TOML ") {
		fault.Text = "takes " + taken(fault.Text[strings.LastIndexByte(fault.Text, ' ')+1:])
	} else if level, ok := strings.CutPrefix(fault.Text, "slog: level string "); ok {
		fault.Text = strings.TrimSuffix(level, ": unknown name") + " must be debug, info, warn or error"
	}
	return fault
}

// taken is what a setting of a Go type takes, in the words of who writes the file.
func taken(goType string) string {
	switch goType {
	case "int":
		return "an integer"
	case "float64":
		return "a number"
	case "string":
		return "a string"
	case "bool":
		return "true or false"
	case "[]string":
		return "a list of strings"
	}
	if strings.HasPrefix(goType, "[]") {
		return "a list of tables"
	}
	return "a table"
}

// maxLineBytes is what a line of the journal, which has 16 MiB, has room for together with an outcome that quotes the line:
// a byte can become five there. A call that does not fit ends the kernel, whoever made it.
const maxLineBytes = 2 << 20

// Check reports the first setting that cannot be meant, as an *Error.
func (c *Config) Check() error {
	for _, fault := range c.faults() {
		return fault
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
	c.placeFaults(refuse)
	c.outsideFaults(refuse)
	c.toolFaults(refuse)
	for name, capacity := range c.Resources {
		if name == "" || !(capacity >= 0) || math.IsInf(capacity, 0) {
			refuse("resources."+name, "%v must be a finite number of at least 0, under a name", capacity)
		}
	}
	return all
}
