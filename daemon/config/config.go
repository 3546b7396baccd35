// Package config reads the daemon's settings.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
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
	Log         Log      `toml:"log"`
	Limits      Limits   `toml:"limits"`
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
	}
}

// Error is a fault of the configuration, with the way out.
type Error struct {
	File string
	Text string
}

// Error names the file and what is wrong with it.
func (e *Error) Error() string { return "configuration " + e.File + ": " + e.Text }

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
	if err := c.Parse(text); err != nil {
		return &Error{File: path, Text: err.Error()}
	}
	if getenv("PWOS_RUNTIME_DIR") != "" {
		c.RuntimeDir = before.RuntimeDir
	}
	if getenv("PWOS_STATE_DIR") != "" {
		c.StateDir = before.StateDir
	}
	return nil
}

// Parse reads TOML over c. What it does not know is an error, which says where it stands and what there is.
func (c *Config) Parse(text []byte) error {
	dec := toml.NewDecoder(strings.NewReader(string(text))).DisallowUnknownFields()
	next := *c
	if err := dec.Decode(&next); err != nil {
		return explain(err)
	}
	if err := next.Check(); err != nil {
		return err
	}
	*c = next
	return nil
}

// explain puts a place to what the TOML library found.
func explain(err error) error {
	if unknown, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(unknown.Errors) > 0 {
		first := &unknown.Errors[0]
		row, column := first.Position()
		return fmt.Errorf("line %d, column %d: no setting is named %q: there are %s",
			row, column, strings.Join(first.Key(), "."), strings.Join(keys(), ", "))
	}
	if at, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := at.Position()
		return fmt.Errorf("line %d, column %d: %s", row, column, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return err
}

// keys are the settings that there are.
func keys() []string {
	return []string{"runtime_dir", "state_dir", "idle_timeout", "log.level", "log.format", "limits.line_bytes"}
}

// maxLineBytes keeps a typing error from becoming a memory bound.
const maxLineBytes = 64 << 20

// Check reports settings that cannot be meant.
func (c *Config) Check() error {
	switch {
	case !filepath.IsAbs(c.RuntimeDir):
		return fmt.Errorf("runtime_dir %q must be an absolute path", c.RuntimeDir)
	case !filepath.IsAbs(c.StateDir):
		return fmt.Errorf("state_dir %q must be an absolute path", c.StateDir)
	case c.Log.Format != "auto" && c.Log.Format != "console" && c.Log.Format != "json":
		return fmt.Errorf("log.format %q must be auto, console or json", c.Log.Format)
	case c.Limits.LineBytes < schema.MaxLine || c.Limits.LineBytes > maxLineBytes:
		return fmt.Errorf("limits.line_bytes %d must be from %d to %d: it can raise the limit, not lower it", c.Limits.LineBytes, schema.MaxLine, maxLineBytes)
	case c.IdleTimeout < 0:
		return fmt.Errorf("idle_timeout must not be negative")
	}
	return nil
}
