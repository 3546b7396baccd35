package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// Location is where a journal lies, as far as a copy of it lies elsewhere. What is "" cannot be told here.
type Location struct {
	Machine   string // digest of the machine's number, which is not for everybody
	Directory string // inode of the journal's directory, and after an @ when it was made, where the file system knows
}

// Locate finds out about a directory. Its device has no part in it: that has another number after a restart of the
// machine. Nor has its path: a directory that was moved within its file system is the same one.
func Locate(dir string) (Location, error) {
	directory, err := directoryID(dir)
	return Location{machineID(), directory}, err
}

// machineID reads the number that the system was given when it was installed. In a container without one there is
// none: its name or its address would be another one after each start.
func machineID() string {
	for _, path := range []string{"/etc/machine-id", "/var/lib/dbus/machine-id"} {
		text, err := os.ReadFile(path)
		if id := strings.TrimSpace(string(text)); err == nil && len(id) == 32 {
			sum := sha256.Sum256([]byte("pwos-machine@v1\n" + id + "\n"))
			return hex.EncodeToString(sum[:16])
		}
	}
	return ""
}

// Differs says in what l is another place than the one of a start, "" where it is the same as far as both are known.
func (l Location) Differs(machine, directory string) string {
	if l.Machine != "" && machine != "" && l.Machine != machine {
		return "on another machine"
	}
	inode, made, _ := strings.Cut(l.Directory, "@")
	oldInode, oldMade, _ := strings.Cut(directory, "@")
	if inode != "" && oldInode != "" && inode != oldInode || made != "" && oldMade != "" && made != oldMade {
		return "in another directory"
	}
	return ""
}
