package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// journalDir returns the directory of the journal that a kernel of this environment keeps (PROTOCOL 1).
func journalDir() (string, error) {
	if dir := os.Getenv("PWOS_STATE_DIR"); dir != "" {
		return filepath.Join(dir, "journal"), nil
	}
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos", "journal"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find state directory: %w: set PWOS_STATE_DIR", err)
	}
	return filepath.Join(home, ".local", "state", "pwos", "journal"), nil
}
