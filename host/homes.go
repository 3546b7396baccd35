package host

import (
	"bufio"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/host/confine"
	"github.com/promptware-os/pwos/internal/osuser"
)

// nameOf returns the user's name, or that of this process's user if u is nil; "" if it has none.
func nameOf(u *osuser.User) string {
	if u == nil {
		return ownName()
	}
	return u.Name
}

var ownName = sync.OnceValue(func() string {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid())) // Current would believe a variable
	if err != nil {
		return ""
	}
	return u.Username
})

// Range of the numbers that distributions assign to people.
const (
	firstPerson = 1000
	lastPerson  = 65533
)

// secretsOf remembers the secrets of users by their homes, since neither they nor this process's variables change.
type secretsOf struct {
	mu    sync.Mutex
	known map[string]confine.Secrets
}

func (k *secretsOf) of(own bool, homes []string, variable func(string) string) confine.Secrets {
	k.mu.Lock()
	defer k.mu.Unlock()
	key := strings.Join(append([]string{strconv.FormatBool(own)}, homes...), "\x00")
	s, known := k.known[key]
	if !known {
		if k.known == nil {
			k.known = make(map[string]confine.Secrets)
		}
		s = confine.SecretsOf(homes, variable)
		k.known[key] = s
	}
	return s
}

// homes returns the home directories of the machine: that of the user that a program runs as, and all others. u is nil for this process's.
func (k *secretsOf) homes(u *osuser.User) (h confine.Homes) {
	uid, variable := os.Getuid(), os.Getenv
	if u != nil {
		uid, variable = u.UID, func(string) string { return "" } // the variables here are another user's
		if u.Home != "" && u.Home != "/" {
			h.Own = append(h.Own, u.Home)
		}
	} else if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		h.Own = append(h.Own, filepath.Clean(home))
	}
	h.Others = []string{"/home", "/root", "/Users"}
	if u != nil {
		if home := os.Getenv("HOME"); filepath.IsAbs(home) {
			h.Others = append(h.Others, filepath.Clean(home))
		}
	}
	if file, err := os.Open("/etc/passwd"); err == nil { // without the file no other users are known
		const fields, number, home = 7, 2, 5
		for lines := bufio.NewScanner(file); lines.Scan(); {
			parts := strings.Split(lines.Text(), ":")
			if len(parts) != fields || !filepath.IsAbs(parts[home]) {
				continue
			}
			n, err := strconv.Atoi(parts[number])
			switch dir := filepath.Clean(parts[home]); {
			case err != nil || dir == "/":
			case n == uid:
				h.Own = append(h.Own, dir)
			case n >= firstPerson && n <= lastPerson:
				h.Others = append(h.Others, dir)
			}
		}
		_ = file.Close() // it was only read
	}
	slices.Sort(h.Own)
	h.Own = slices.Compact(h.Own)
	h.Secrets = k.of(u == nil, h.Own, variable)
	h.Others = slices.DeleteFunc(h.Others, func(dir string) bool { return dir == "/" || slices.Contains(h.Own, dir) })
	return h
}
