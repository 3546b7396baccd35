// Package config reads the daemon's settings.
package config

import (
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/schema/quote"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// Config has the daemon's settings (PROTOCOL 1). The toml names are the keys of the file.
type Config struct {
	RuntimeDir  string   `toml:"runtime_dir"`
	StateDir    string   `toml:"state_dir"`
	IdleTimeout Duration `toml:"idle_timeout"` // 0: never end
	File        string   `toml:"-"`            // path of this configuration, which may not exist; "": none
	// AuthorizedKeys is the file of the keys that are admitted. Empty: open mode.
	AuthorizedKeys string `toml:"authorized_keys"`
	Log            Log    `toml:"log"`
	Limits         Limits `toml:"limits"`
	Listen         Listen `toml:"listen"`

	Root   string            `toml:"root"`   // an absolute directory or an https: address; "": none
	Mounts map[string]string `toml:"mounts"` // further names: prefixes such as os:///lib, each with an address or directory
	Init   string            `toml:"init"`   // the name to ingest first; the kernel only reports it
	Origin string            `toml:"origin"` // of the operator and the processes that it spawns, as written; see Principal

	Ingest Ingest `toml:"ingest"`
	Tools  Tools  `toml:"tools"`
	Code   Code   `toml:"code"`

	Resources map[string]float64 `toml:"resources"` // capacities of the pools, by name
	Clock     Clock              `toml:"clock"`
	Ipc       Ipc                `toml:"ipc"`
	Journal   Journal            `toml:"journal"`
	Crypto    Crypto             `toml:"crypto"`
	Agents    Agents             `toml:"agents"`
	Approval  Approval           `toml:"approval"`
	HTTP      HTTP               `toml:"http"`
	Blobs     Blobs              `toml:"blobs"`
	Snapshots Snapshots          `toml:"snapshots"`
	Record    Record             `toml:"record"`
	Terminal  Terminal           `toml:"terminal"`
	Steps     Steps              `toml:"steps"`

	Net      Net                 `toml:"net"`
	Upstream map[string]Upstream `toml:"upstream"` // by name

	Cluster Cluster `toml:"cluster"`

	Prices map[string][]float64 `toml:"prices"` // of models, in US dollars per million tokens; see priceFaults
}

// Ingest configures which resources are trusted (ABI 8).
type Ingest struct {
	TrustedKeys string `toml:"trusted_keys"` // file of keys whose signatures are accepted; "": trusted_keys beside this configuration
	Proof       bool   `toml:"proof"`        // require an integrity or a signature, also below root
	Unpinned    bool   `toml:"unpinned"`     // accept unpinned resources from the web
}

// Tools bounds user-space syscalls.
type Tools struct {
	Programs    bool     `toml:"programs"`     // run executable files too, not only modules
	Time        Duration `toml:"time"`         // of one call
	MemoryBytes int64    `toml:"memory_bytes"` // of a module
	OutputBytes int64    `toml:"output_bytes"` // of one call
	AtOnce      int      `toml:"at_once"`      // calls that run at a time; 0: half of the processors, at least one
}

// Code bounds the code of registered syscalls.
type Code struct {
	Time        Duration `toml:"time"`         // of one call
	MemoryBytes int64    `toml:"memory_bytes"` // of one call
	OutputBytes int64    `toml:"output_bytes"` // of one call
	AtOnce      int      `toml:"at_once"`      // calls, and processes for them, at a time; 0: the number of processors, at least two
}

// Crypto configures the kernel's sealing key.
type Crypto struct {
	Identity    string `toml:"identity"` // path of a private key file, or of a public key that the ssh-agent holds; "": any key of the agent
	AgentSocket string `toml:"-"`        // of the ssh-agent, from the environment; "": none
}

// Agents configures the programs of agents.
type Agents struct {
	Grace        Duration `toml:"grace"`         // between SIGTERM and SIGKILL
	RestartDelay Duration `toml:"restart_delay"` // before the first restart; each further one doubles it
	Read         []string `toml:"read"`          // absolute paths that every agent may read
	Hide         []string `toml:"hide"`          // absolute paths, or paths below ~/, that are hidden from every agent
	User         string   `toml:"user"`          // user that a kernel of user 0 runs agents as; "": its own

	// Bounds for each agent (PROTOCOL 9).
	Connections           int   `toml:"connections"`              // to the sockets, at a time
	Prologues             int   `toml:"prologues"`                // of those, how many may be unauthenticated
	InFlightBytes         int64 `toml:"in_flight_bytes"`          // of requests in flight and answers not yet read
	JournalBytesPerSecond int64 `toml:"journal_bytes_per_second"` // sustained
	JournalBurstBytes     int64 `toml:"journal_burst_bytes"`      // at once, after a pause
	DiskBytes             int64 `toml:"disk_bytes"`               // of its home and its temporary files
}

// Terminal configures the terminal of "pwos run".
type Terminal struct {
	Attention string `toml:"attention"` // key after which keys are an answer to the question that is shown
	Notify    Switch `toml:"notify"`    // a new question rings, and notifies the desktop
}

// Chord returns the control character of Attention, and how a key cap would name it; 0: no question is shown.
func (t *Terminal) Chord() (char byte, name string) {
	if letter, ok := strings.CutPrefix(t.Attention, "ctrl-"); ok && len(letter) == 1 {
		return letter[0] & 0x1f, "Ctrl-" + letter
	}
	return 0, ""
}

// Record configures what is kept of agents besides the journal.
type Record struct {
	Terminals Switch `toml:"terminals"` // what is shown of an agent at a terminal is in its log
	Execs     Switch `toml:"execs"`     // what the programs of agents execute is recorded, and rules can refuse it
	Steps     Switch `toml:"steps"`     // what agents change can be seen and undone
	Prompts   Switch `toml:"prompts"`   // what users ask of agents is kept, as far as their hosts tell
}

// Steps bounds what is kept of steps.
type Steps struct {
	Keep      Duration `toml:"keep"`       // how long
	KeepBytes int64    `toml:"keep_bytes"` // of one directory
	MaxFiles  int64    `toml:"max_files"`  // entries of a directory whose steps are kept
	MaxBytes  int64    `toml:"max_bytes"`  // of its store
	FileBytes int64    `toml:"file_bytes"` // of a file whose content is kept
}

// Switch is On or Off.
type Switch string

// The two positions of a Switch.
const (
	On  Switch = "on"
	Off Switch = "off"
)

// Journal configures the journal.
type Journal struct {
	Sync          Sync     `toml:"sync"`
	SyncInterval  Duration `toml:"sync_interval"`  // with interval: the period that a power cut may lose
	SnapshotEvery int      `toml:"snapshot_every"` // about how many entries a start after a crash replays at most
}

// Sync says when a command is answered (PROTOCOL 7).
type Sync string

// With Always, a command is answered when it is on disk; with Interval, when it is written. With Interval, a power cut
// loses the commands that were answered since the last fsync. A killed kernel loses nothing in either mode.
const (
	Always   Sync = "always"
	Interval Sync = "interval"
)

// Clock configures the kernel's tick.
type Clock struct {
	Interval Duration `toml:"interval"` // of a tick; 0: only commands advance it
}

// Ipc configures mailboxes and governance.
type Ipc struct {
	Mailbox int    `toml:"mailbox"` // capacity of a mailbox
	Deny    []Deny `toml:"deny"`    // governance: messages that match a rule are not delivered
}

// Deny is one rule of governance.
type Deny struct {
	Intent      *string `toml:"intent"`
	SenderPID   *int64  `toml:"sender_pid"`
	ReceiverPID *int64  `toml:"receiver_pid"`
}

// Cluster configures the other kernels of a cluster (PROTOCOL 13).
type Cluster struct {
	Name      string `toml:"name"`      // of this kernel; "": not in a cluster
	Bus       string `toml:"bus"`       // addresses of NATS, separated by commas
	Authority string `toml:"authority"` // PEM file of authorities for a bus with TLS; "": those of the system
	// AcceptUnsynced says that answers may wait for a bus that does not state that it syncs each write.
	AcceptUnsynced bool `toml:"accept_unsynced"`

	Members     string `toml:"members"`     // file of the cluster's kernels; "": members beside this configuration
	Acknowledge string `toml:"acknowledge"` // when a command is answered: Disk or Quorum
	Replicas    int    `toml:"replicas"`    // nodes of the bus that keep the copy of the journal

	Lease   Duration `toml:"lease"`   // with Quorum, a call waits up to four fifths of it for the bus
	Standby bool     `toml:"standby"` // with Quorum: lead only if the leader does not renew its lease
}

// Approval configures questions about calls, which rules of the policy ask.
type Approval struct {
	Wait   Duration `toml:"wait"`   // how long a call waits for the answer before it fails as pending
	Notify []string `toml:"notify"` // a command with its arguments, which is run for each question
}

// Log configures the log.
type Log struct {
	Level  slog.Level `toml:"level"`
	Format string     `toml:"format"` // auto, console or json
}

// Limits bound what clients may send.
type Limits struct {
	LineBytes int `toml:"line_bytes"` // longest line of kernel.sock; events.sock has at least its own default
}

// Listen configures where else the kernel listens, besides its sockets.
type Listen struct {
	TLS string `toml:"tls"` // HOST:PORT for clients on other machines (PROTOCOL 13), which needs authorized keys; "": nowhere
}

// HTTP configures Http.Fetch.
type HTTP struct {
	Allow        []string `toml:"allow"`          // prefixes of addresses that are refused by default, such as 10.1.0.0/16
	AllowHosts   []string `toml:"allow_hosts"`    // names whose addresses may be loopback or private
	CAFile       string   `toml:"ca_file"`        // PEM file of authorities in addition to the system's; "": none
	MaxBodyBytes int64    `toml:"max_body_bytes"` // of an answer, decompressed
}

// Blobs bounds the blob directory.
type Blobs struct {
	TTL       Duration `toml:"ttl"`        // how long an unused blob is kept
	FileBytes int64    `toml:"file_bytes"` // of one blob
	DirBytes  int64    `toml:"dir_bytes"`  // of all blobs
	DirFiles  int      `toml:"dir_files"`
	Share     int64    `toml:"agent_bytes"` // of the blobs of one agent
}

// Snapshots has settings that are accepted and have no effect any more.
type Snapshots struct {
	Keep    int      `toml:"keep"`
	KeepFor Duration `toml:"keep_for"`
}

// Duration is a span of time, written as 10m, 1h30m or 14d.
type Duration time.Duration

// UnmarshalText reads a duration; a negative one is an error.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if days, found := strings.CutSuffix(string(text), "d"); found {
		v, err = time.ParseDuration(days + "h")
		if v > math.MaxInt64/24 {
			err = strconv.ErrRange
		}
		v *= 24
	}
	if err != nil || v < 0 {
		return fmt.Errorf("%q is not a duration such as 10m or 14d", text)
	}
	*d = Duration(v)
	return nil
}

// String formats a duration as UnmarshalText reads it.
func (d Duration) String() string { return time.Duration(d).String() }

// MarshalText returns the text of String.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Default returns the default settings for a user whose environment and home are given.
func Default(getenv func(string) string, uid int, home string) (c Config) {
	for _, s := range c.settings() {
		s.reset()
	}
	c.RuntimeDir, c.StateDir = unixsock.RuntimeDir(getenv, uid), unixsock.StateDir(getenv, home)
	c.Crypto.AgentSocket = getenv("SSH_AUTH_SOCK")
	return c
}

// Check reports the first invalid setting, as an *Error.
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
	for _, s := range c.settings() {
		if text := s.fault(); text != "" {
			refuse(s.key, "%s", text)
		}
	}
	c.placeFaults(refuse)
	c.upstreamFaults(refuse)
	c.priceFaults(refuse)
	c.clusterFaults(refuse)
	for name, capacity := range c.Resources {
		if name == "" || !(capacity >= 0) || math.IsInf(capacity, 0) {
			refuse("resources."+name, "%v must be a finite number of at least 0, under a name", capacity)
		}
		if strings.ContainsFunc(name, quote.Hidden) {
			refuse(fmt.Sprintf("resources.%q", name), "the name must have only visible characters")
		}
	}
	return all
}

// TrustedKeys returns the path of the file of keys whose signatures of resources are accepted, which may not exist; "" if
// there is no configuration.
func (c *Config) TrustedKeys() string {
	if c.Ingest.TrustedKeys != "" || c.File == "" {
		return c.Ingest.TrustedKeys
	}
	return filepath.Join(filepath.Dir(c.File), "trusted_keys")
}

// BlobDir is the directory of the blobs.
func (c *Config) BlobDir() string { return filepath.Join(c.RuntimeDir, "blobs") }

// LogForm is the form of log lines; NO_COLOR in the environment makes them plain.
func (c *Config) LogForm(getenv func(string) string) logging.Form {
	return logging.Form{Level: c.Log.Level, Format: c.Log.Format, Plain: getenv("NO_COLOR") != ""}
}
