package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// stateDir returns the state directory of a kernel of this environment (PROTOCOL 1).
func stateDir() (string, error) {
	if dir := os.Getenv("PWOS_STATE_DIR"); dir != "" {
		return dir, nil
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find state directory: %w: set PWOS_STATE_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "pwos"), nil
}

// journalDir returns the directory of the journal that a kernel of this environment keeps.
func journalDir() (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "journal"), nil
}

// agentLogFile returns the file that the program of a process writes to on standard error; an older one is that with ".1".
func agentLogFile(pid int64) (string, error) {
	dir, err := stateDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "agents", strconv.FormatInt(pid, 10), "stderr.log"), nil
}
