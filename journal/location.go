package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// Location identifies the place of a journal, so that a copy elsewhere is detected. "" is unknown.
type Location struct {
	Machine   string // digest of the machine id, which is not public
	Directory string // inode of the journal's directory, and after an @ its creation time, if the file system records it
}

// Locate returns the location of a directory. The device number is not part of it, since it may change at a restart of the
// machine. Nor is the path, since a directory that is moved within its file system is the same one.
func Locate(dir string) (Location, error) {
	directory, err := directoryID(dir)
	return Location{machineID(), directory}, err
}

// machineID reads the id that the system was given at its installation. It is "" in a container without one, whose name and
// address change with each start.
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

// Differs names the part of l that differs from the location at a start, or "" if all known parts
// are equal.
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
