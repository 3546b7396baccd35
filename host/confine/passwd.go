package confine

import (
	"os"
	"os/user"
	"slices"
	"strconv"
	"strings"
)

const (
	passwdFile = "/etc/passwd"
	// longestPasswd bounds what replaces it, which is passed as one argument.
	longestPasswd = 64 << 10
)

// passwd returns the layer that gives the program's user the program's home: the JVM, ssh and others ask the system instead of HOME.
func (t *tree) passwd() []layer {
	at := canonical(passwdFile)
	if t.Home == "" || strings.ContainsAny(t.Home, ":\n") || t.covered(at, t.Write) || within(at, t.Dir) {
		return nil
	}
	text, err := os.ReadFile(at)
	if err != nil {
		return nil // then nobody finds a home there
	}
	content, changed := withHome(string(text), t.User, t.Home, named)
	if !changed || len(content) > longestPasswd {
		return nil
	}
	return []layer{{kind: file, path: at, content: content}}
}

// withHome returns passwd's text with another home of a user, and whether that changes it. A user of another source, such as a directory
// service, gets a line if named knows it: most machines look into the file first.
func withHome(text string, uid int, home string, named func(uid int) *user.User) (string, bool) {
	const fields, number, place = 7, 2, 5
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		entry := strings.Split(line, ":")
		if len(entry) != fields || entry[number] != strconv.Itoa(uid) {
			continue
		}
		if entry[place] == home {
			return text, false
		}
		entry[place] = home
		lines[i] = strings.Join(entry, ":")
		return strings.Join(lines, "\n") + "\n", true
	}
	u := named(uid)
	if u == nil || slices.ContainsFunc([]string{u.Username, u.Gid, u.Name}, func(s string) bool { return strings.ContainsAny(s, ":\n") }) {
		return text, false
	}
	entry := strings.Join([]string{u.Username, "x", u.Uid, u.Gid, u.Name, home, "/bin/sh"}, ":")
	return strings.TrimPrefix(strings.Join(append(lines, entry), "\n")+"\n", "\n"), true
}

// named returns the user with a number, or nil.
func named(uid int) *user.User {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return nil
	}
	return u
}
