package gitdirs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// maxConfig bounds a file of settings, in bytes.
const maxConfig = 1 << 20

// Settings are the values of each key of a file of settings, in their order. A key without a value has NoValue.
type Settings map[string][]string

const NoValue = "\x00"

// Parse returns the settings of a text, as git reads it. What it includes is not followed.
func Parse(text []byte) (Settings, error) {
	out, err := git(text, "config", "--file", "-", "--no-includes", "--null", "--list")
	if err != nil {
		return nil, err
	}
	settings := Settings{}
	for one := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		if len(one) == 0 {
			continue
		}
		key, value, given := strings.Cut(string(one), "\n")
		if !given {
			value = NoValue
		}
		settings[key] = append(settings[key], value)
	}
	return settings, nil
}

// parseFile returns the settings of a file; none if there is no file.
func parseFile(path string) (Settings, error) {
	text, err := readRegular(path, maxConfig)
	if errors.Is(err, os.ErrNotExist) {
		return Settings{}, nil
	}
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// set gives a key of a file these values. The file keeps its owner.
func set(path, key string, values []string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		if _, err = placeholder(path, ""); err == nil {
			info, err = os.Lstat(path)
		}
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	if len(values) == 0 {
		if _, err := git(nil, "config", "--file", path, "--unset-all", key); err != nil {
			return err
		}
	}
	how := "--replace-all"
	for _, value := range values {
		if value == NoValue {
			value = "true"
		}
		if _, err := git(nil, "config", "--file", path, how, "--", key, value); err != nil {
			return err
		}
		how = "--add"
	}
	return keepOwner(path, info)
}

// keepOwner gives a file that root has replaced to the owner of the one before.
func keepOwner(path string, before os.FileInfo) error {
	st, ok := before.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return nil
	}
	return os.Lchown(path, int(st.Uid), int(st.Gid))
}

// gitTime bounds one call of git.
const gitTime = 20 * time.Second

// git runs git outside of any repository, and without the settings of the user and the machine.
func git(stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), gitTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = "/", bytes.NewReader(stdin)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C", "GIT_DIR=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("git config: %s", strings.TrimSpace(string(exit.Stderr)))
	}
	return out, err
}

// ofUser returns the user's own settings and those of the machine, with what they include; none if there are none.
func ofUser() Settings {
	settings := Settings{}
	for _, where := range []string{"--global", "--system"} {
		ctx, cancel := context.WithTimeout(context.Background(), gitTime)
		cmd := exec.CommandContext(ctx, "git", "config", where, "--includes", "--null", "--list")
		cmd.Dir = "/"
		out, err := cmd.Output()
		cancel()
		if err != nil {
			continue
		}
		for one := range bytes.SplitSeq(out, []byte{0}) {
			key, value, _ := strings.Cut(string(one), "\n")
			settings[key] = append(settings[key], value)
		}
	}
	return settings
}
