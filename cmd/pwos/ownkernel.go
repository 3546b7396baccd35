package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/client"
)

// temporaryDir makes a temporary directory whose path is short enough for sockets.
func temporaryDir(prefix string) (string, error) {
	base := os.TempDir()
	if len(base) > 60 {
		base = "/tmp"
	}
	dir, err := os.MkdirTemp(base, prefix)
	if err != nil {
		return "", fmt.Errorf("make temporary directory: %w", err)
	}
	return dir, nil
}

// launchIn starts a kernel with these flags that knows no place but dir. It serves what ownOptions name.
func launchIn(ctx context.Context, dir string, args ...string) (*client.Daemon, error) {
	command, err := daemonCommand()
	if err != nil {
		return nil, err
	}
	command.Args = append(command.Args, args...)
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, nil, 0o600); err != nil {
		return nil, fmt.Errorf("write configuration of own kernel: %w", err)
	}
	command.Env = []string{"HOME=" + dir, "PWOS_STATE_DIR=" + filepath.Join(dir, "state"), "PWOS_CONFIG=" + config}
	return client.Launch(ctx, command, ownOptions(dir).RuntimeDir)
}

// ownOptions lead to the kernel that launchIn has started in dir.
func ownOptions(dir string) client.Options {
	return client.Options{RuntimeDir: filepath.Join(dir, "run")}
}

// quietWait waits for a kernel that was killed: that it did not end well is known.
func quietWait(daemon *client.Daemon) error {
	_ = daemon.Wait()
	return nil
}
