package unixsock

import (
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/promptware-os/pwos/schema/fault"
)

// Places has the paths in a runtime directory (PROTOCOL 1).
type Places struct {
	Dir          string // the runtime directory itself, 0700
	KernelSocket string // for OsMessage
	EventsSocket string // for OsEvent
	Lock         string // the instance lock
	Log          string // output of a daemon that a client has started
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

// RuntimeDir returns the runtime directory of the user uid (PROTOCOL 1, BRIDGE 4.5.1). It depends on its arguments
// only, so that every client and the daemon of a user agree. PWOS_RUNTIME_DIR is used as it is; the other variables
// only if they are absolute, as their specification says.
func RuntimeDir(getenv func(string) string, uid int) string {
	if dir := getenv("PWOS_RUNTIME_DIR"); dir != "" {
		return filepath.Clean(dir)
	}
	if base := getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(base) {
		return filepath.Join(base, "pwos")
	}
	// All users share these directories, so the name has the user.
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

// AuthorizedKeys returns the path of the file that enables signature mode by its existence, next to the configuration
// file (PROTOCOL 1).
func AuthorizedKeys(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), "authorized_keys")
}

// KnownKernels returns the path of the file in which clients store the host keys of kernels, next to the configuration
// file.
func KnownKernels(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), "known_kernels")
}

// MaxSocketPath is the maximum length of a socket's path in bytes, without the terminating zero: 107 on Linux, 103 on
// macOS.
const MaxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// CheckSocketPath returns a fault.PlacePathTooLong if path has more than MaxSocketPath bytes. The system's own error is
// "invalid argument".
func CheckSocketPath(path string) error {
	if len(path) > MaxSocketPath {
		return fault.PlacePathTooLong.New("socket path %s is %d bytes long, of at most %d", path, len(path), MaxSocketPath).
			WithFix("set PWOS_RUNTIME_DIR to a shorter directory").With("path", path)
	}
	return nil
}
