package unixsock

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/schema/fault"
)

// Places names the files of one runtime directory (PROTOCOL 1).
type Places struct {
	Dir          string // the runtime directory itself, 0700
	KernelSocket string // speaks OsMessage first
	EventsSocket string // speaks OsEvent first
	Lock         string // the instance lock
	Log          string // what a daemon that was started by a client has to say
	Blobs        string // data plane of BlobPointers
}

// PlacesIn returns the places in the runtime directory dir.
func PlacesIn(dir string) Places {
	return Places{
		Dir:          filepath.Clean(dir),
		KernelSocket: filepath.Join(dir, "kernel.sock"),
		EventsSocket: filepath.Join(dir, "events.sock"),
		Lock:         filepath.Join(dir, "kernel.lock"),
		Log:          filepath.Join(dir, "kernel.log"),
		Blobs:        filepath.Join(dir, "blobs"),
	}
}

// RuntimeDir returns the runtime directory of the user uid (PROTOCOL 1, BRIDGE 4.5.1). It depends
// on its arguments only, so that every client and the daemon of a user agree. Our own variable is
// used as written; the borrowed ones count only if absolute, as their specification says.
func RuntimeDir(getenv func(string) string, uid int) string {
	if dir := getenv("PWOS_RUNTIME_DIR"); dir != "" {
		return filepath.Clean(dir)
	}
	if base := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos")
	}
	// These bases are shared by all users, so the name tells ours apart.
	name := "pwos-" + strconv.Itoa(uid)
	if base := getenv("TMPDIR"); filepath.IsAbs(base) {
		return filepath.Join(base, name)
	}
	return filepath.Join("/tmp", name)
}

// StateDir returns the state directory: journal, projections, host key (PROTOCOL 1). home is the user's home directory.
func StateDir(getenv func(string) string, home string) string {
	if dir := getenv("PWOS_STATE_DIR"); dir != "" {
		return filepath.Clean(dir)
	}
	if base := getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos")
	}
	return filepath.Join(home, ".local", "state", "pwos")
}

// ConfigFile returns the path of the configuration (PROTOCOL 1). home is the user's home directory.
func ConfigFile(getenv func(string) string, home string) string {
	if file := getenv("PWOS_CONFIG"); file != "" {
		return filepath.Clean(file)
	}
	if base := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos", "config.toml")
	}
	return filepath.Join(home, ".config", "pwos", "config.toml")
}

// AuthorizedKeys returns the file whose presence switches signature mode on, next to the
// configuration file (PROTOCOL 1).
func AuthorizedKeys(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), "authorized_keys")
}

// KnownKernels returns the file in which clients remember the host keys of kernels, next to the
// configuration file.
func KnownKernels(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), "known_kernels")
}

// MaxSocketPath is how many bytes of path fit into a socket address: 107 on Linux, 103 on macOS. One byte of the
// system's field is the terminating zero.
const MaxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// CheckSocketPath returns a fault.PlacePathTooLong where path has more than MaxSocketPath bytes. Left to the system, the
// error would read "invalid argument".
func CheckSocketPath(path string) error {
	if len(path) > MaxSocketPath {
		return fault.PlacePathTooLong.New("socket path %s is %d bytes long, of at most %d", path, len(path), MaxSocketPath).
			WithFix("set PWOS_RUNTIME_DIR to a shorter directory").With("path", path)
	}
	return nil
}

// sampledPerSecond is how many lines a second a sampled log takes.
const sampledPerSecond = 10

// sampled logs what strangers can cause as often as they like: the first lines of each second, and
// then the number of further ones.
type sampled struct {
	mu      sync.Mutex
	since   time.Time
	said    int
	skipped int
}

func (s *sampled) warn(log *slog.Logger, text string, attrs ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.since) >= time.Second {
		if s.skipped > 0 {
			log.Warn("more of the same was not logged", "lines", s.skipped)
		}
		s.since, s.said, s.skipped = now, 0, 0
	}
	if s.said == sampledPerSecond {
		s.skipped++
		return
	}
	s.said++
	log.Warn(text, attrs...)
}

// EnsurePrivateDir makes the directory path, 0700, with those parents that are missing (BRIDGE 4.5.1). One that is there
// already has to pass CheckPrivateDir. Two processes may do this at once.
func EnsurePrivateDir(path string) error {
	if err := checkAbsolute(path); err != nil {
		return err
	}
	path = filepath.Clean(path)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("make parent directories: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make private directory: %w", err)
	}
	return CheckPrivateDir(path)
}

// CheckPrivateDir reports with a fault.PlaceUnsafe that path is a symbolic link, is no directory, is not ours, or is open to
// group or others; with an error that wraps fs.ErrNotExist that it is not there.
//
// It judges the very directory that it opened, not what the path may name a moment later. A directory that passes
// cannot be changed by another user but through a parent; who swaps it there wins nothing, since both ends of a
// connection check whose process the other end is (PeerOf).
func CheckPrivateDir(path string) error {
	if err := checkAbsolute(path); err != nil {
		return err
	}
	path = filepath.Clean(path) // a trailing slash would follow a symbolic link
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return explainUnopened(path, err)
	}
	info, err := dir.Stat()
	if err := errors.Join(err, dir.Close()); err != nil {
		return fmt.Errorf("inspect private directory: %w", err)
	}
	return judgeDir(path, info)
}

// judgeDir is the verdict on the file at path.
func judgeDir(path string, info fs.FileInfo) error {
	mode := info.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return fault.Unsafe(path, "is a symbolic link", "remove the link, or name the directory itself")
	case !mode.IsDir():
		return fault.Unsafe(path, "is not a directory", "move it out of the way, or name another directory")
	case ownerOf(info) != os.Geteuid():
		return fault.Unsafe(
			path,
			fmt.Sprintf("belongs to user %d, not to user %d", ownerOf(info), os.Geteuid()), "name a directory of your own",
		)
	case mode.Perm()&0o077 != 0:
		return fault.Unsafe(
			path,
			fmt.Sprintf("is open to group or others (mode %04o)", mode.Perm()),
			"look at what is in it, then remove it or chmod it to 0700, or name another directory",
		)
	case mode.Perm() != 0o700:
		return fault.Unsafe(path, fmt.Sprintf("is closed to its owner (mode %04o)", mode.Perm()), "chmod it to 0700")
	}
	return nil
}

// explainUnopened says why path could not be opened as a directory. It only words the refusal,
// which stays whatever it finds.
func explainUnopened(path string, openErr error) error {
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("open private directory: %w", err)
	}
	if err := judgeDir(path, info); err != nil {
		return err
	}
	return fmt.Errorf("open private directory: %w", openErr)
}

// checkAbsolute refuses a path that means another place in each working directory, so that a daemon and its clients
// could miss each other.
func checkAbsolute(path string) error {
	if filepath.IsAbs(path) {
		return nil
	}
	return fault.Unsafe(path, "is not an absolute path", "write it from the root on")
}

// ownerOf returns the user whose file it is, -1 if the system does not say.
func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
