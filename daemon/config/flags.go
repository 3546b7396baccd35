package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// Settings combines flags, environment and file, in this order of precedence (PROTOCOL 1). done is true if the flags only
// asked for a text, such as the version.
func Settings(args []string, getenv func(string) string, stdout io.Writer, program string) (cfg Config, done bool, err error) {
	home, homeErr := os.UserHomeDir()
	if homeErr != nil {
		home = "/" // no state is stored there: see below
	}
	cfg = Default(getenv, os.Getuid(), home)
	var file string
	var version bool
	flags := pflag.NewFlagSet("pwosd", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&file, "config", "", "configuration file (default "+unixsock.ConfigFile(getenv, home)+")")
	for _, s := range cfg.settings() {
		if s.name != "" {
			flags.String(s.name, "", s.usage)
			if s.kind == unstable.Bool {
				flags.Lookup(s.name).NoOptDefVal = "true"
			}
		}
	}
	flags.BoolVar(&version, "version", false, "print the version and exit")
	switch err := flags.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(stdout, usage, flags.FlagUsages())
		return cfg, true, nil
	case err != nil:
		return cfg, false, fmt.Errorf("%w (pwosd --help lists the flags)", err)
	case flags.NArg() > 0:
		return cfg, false, fmt.Errorf("unexpected argument %q (pwosd --help lists the flags)", flags.Arg(0))
	case version:
		fmt.Fprintln(stdout, "pwosd", program)
		return cfg, true, nil
	}
	named := flags.Changed("config")
	if !named {
		file = unixsock.ConfigFile(getenv, home)
	}
	if cfg.File, err = filepath.Abs(file); err != nil {
		return cfg, false, fmt.Errorf("find configuration: %w", err)
	}
	// A file that a flag or the environment names must exist.
	if err := cfg.Load(cfg.File, named || getenv("PWOS_CONFIG") != "", getenv); err != nil {
		return cfg, false, err
	}
	if err := override(&cfg, flags); err != nil {
		return cfg, false, err
	}
	if nowhere := unixsock.StateDir(func(string) string { return "" }, home); homeErr != nil && cfg.StateDir == nowhere {
		return cfg, false, fmt.Errorf("find state directory: %w: set HOME, or PWOS_STATE_DIR", homeErr)
	}
	if cfg.AuthorizedKeys == "" {
		if cfg.AuthorizedKeys, err = keysBeside(cfg.File); err != nil {
			return cfg, false, err
		}
	}
	return cfg, false, cfg.Check()
}

// setFlag sets a setting to the text of a flag.
func (c *Config) setFlag(s setting, text string) error {
	at, ok := s.at.(*bool)
	if !ok {
		return c.Set(s.key, text)
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return &Error{Key: s.key, Text: fmt.Sprintf("%q must be true or false", text)}
	}
	*at = on
	return nil
}

// keysBeside returns the path of the authorized keys in the directory of the configuration file, or "" if it does not
// exist. It does not read them: unreadable keys, or a broken link, must not result in open mode.
func keysBeside(file string) (string, error) {
	path := unixsock.AuthorizedKeys(file)
	_, err := os.Lstat(path)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	}
	return "", fmt.Errorf("find authorized keys: %w", err)
}

// override applies the flags. A relative path of a flag is relative to the working directory.
func override(cfg *Config, flags *pflag.FlagSet) error {
	for _, s := range cfg.settings() {
		if s.name == "" || !flags.Changed(s.name) {
			continue
		}
		value, err := flags.GetString(s.name)
		if err == nil && s.path && value != "" && !(s.key == "root" && strings.HasPrefix(strings.ToLower(value), "https:")) {
			value, err = filepath.Abs(value)
		}
		if err == nil {
			err = cfg.setFlag(s, value)
		}
		if wrong, ok := errors.AsType[*Error](err); ok {
			wrong.Key = "--" + s.name
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const usage = `pwosd is the kernel: it serves agents and the pwos command line on a Unix socket.

Usage:
  pwosd [flags]

Clients start it if none runs. It ends cleanly on SIGTERM, on
SIGINT, and on "pwos shutdown".

Flags:
`
