package unixsock

import (
	"path/filepath"
	"strconv"
)

// Places names what lies in one runtime directory (PROTOCOL 1).
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

// RuntimeDir returns the runtime directory of the user uid (PROTOCOL 1, BRIDGE 4.5.1). It looks at nothing but its
// arguments, so that every client and the daemon of one user come to the same place. A value of ours is taken as it is
// written; of the borrowed variables only an absolute one counts, as their own specification has it.
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

// AuthorizedKeys returns the file whose presence switches signature mode on: it lies beside the configuration file
// (PROTOCOL 1).
func AuthorizedKeys(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), "authorized_keys")
}

// KnownKernels returns the file in which clients remember the host keys of kernels: it lies beside the configuration file.
func KnownKernels(configFile string) string {
	return filepath.Join(filepath.Dir(configFile), "known_kernels")
}
