package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/transport/unixsock"
)

// Settings puts together flags, environment and file, in this order of precedence (PROTOCOL 1). done says that the flags
// asked for a text, which may be the version, and nothing else.
func Settings(args []string, getenv func(string) string, stdout io.Writer, program string) (cfg Config, done bool, err error) {
	home, homeErr := os.UserHomeDir()
	if homeErr != nil {
		home = "/" // no state is kept there: see below
	}
	cfg = Default(getenv, os.Getuid(), home)
	var file string
	var version bool
	flags := pflag.NewFlagSet("pwosd", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&file, "config", "", "configuration file (default "+unixsock.ConfigFile(getenv, home)+")")
	flags.String("runtime-dir", "", "directory of the sockets (default "+cfg.RuntimeDir+")")
	flags.String("state-dir", "", "directory of what outlives a restart (default "+cfg.StateDir+")")
	flags.String("root", "", "what os:///… means: a directory, or an https: address (default: nothing)")
	flags.String("origin", "", "whose stored things the operator sees: an address, or a name (default: the root, or https://pwos.local/)")
	flags.String("authorized-keys", "", "let in the keys of this file alone (default: the file authorized_keys beside the configuration, where it is there)")
	flags.String("idle-timeout", "", "end after nobody was connected for that long, such as 10m (default: stay)")
	flags.String("sync", "", "always: answer a command once it is on disk; interval: once it is written (default always)")
	flags.String("log-level", "", "debug, info, warn or error (default info)")
	flags.String("log-format", "", "auto, console or json (default auto: console at a terminal)")
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
	// The one that a flag or the environment names has to be there.
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

// keysBeside returns the path of the authorized keys beside the configuration file, empty where there are none. Whether they
// may be used is not asked here: what cannot be looked at, or leads nowhere, must not leave the door open.
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

// override sets what the flags say. A directory may be relative here, where there is somebody's working directory.
func override(cfg *Config, flags *pflag.FlagSet) (err error) {
	keys := map[string]string{
		"sync":        "journal.sync",
		"runtime-dir": "runtime_dir", "state-dir": "state_dir", "idle-timeout": "idle_timeout", "authorized-keys": "authorized_keys",
		"root": "root", "origin": "origin",
		"log-level": "log.level", "log-format": "log.format",
	}
	flags.Visit(func(f *pflag.Flag) {
		key, ok := keys[f.Name]
		if !ok || err != nil {
			return
		}
		value := f.Value.String()
		if value != "" && place(key, value) {
			value, err = filepath.Abs(value)
		}
		if err == nil {
			err = cfg.Set(key, value)
		}
		if wrong, ok := errors.AsType[*Error](err); ok {
			wrong.Key = "--" + f.Name
		}
	})
	return err
}

// place reports whether a flag's value is a path of this machine.
func place(key, value string) bool {
	switch key {
	case "runtime_dir", "state_dir", "authorized_keys":
		return true
	case "root":
		return !strings.HasPrefix(strings.ToLower(value), "https:")
	}
	return false
}

const usage = `pwosd is the kernel: it serves agents and the pwos command line on a Unix socket.

Usage:
  pwosd [flags]

A client starts it by itself when there is none. It ends in good order on SIGTERM, on
SIGINT, and on "pwos shutdown".

Flags:
`
