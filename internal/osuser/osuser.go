// Package osuser finds users of the operating system.
package osuser

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// User is a user of the operating system.
type User struct {
	UID, GID int
	Groups   []int  // in addition to GID
	Name     string // "": the system knows none
	Home     string // absolute; "": none
}

// Own gives files and directories that this process has made to the user. It does nothing if u is nil.
func (u *User) Own(paths ...string) error {
	if u == nil {
		return nil
	}
	for _, path := range paths {
		if err := os.Lchown(path, u.UID, u.GID); err != nil {
			return fmt.Errorf("give files to user %d: %w", u.UID, errors.Unwrap(err)) // a client must not see the path
		}
	}
	return nil
}

// Find finds a user of the system by name or, if the text is digits, by number. The system need not know a number: such a user has
// the group of that number, and no home.
func Find(text string) (*User, error) {
	number, err := strconv.ParseUint(text, 10, 32)
	const none = 1<<32 - 1 // means "no change" to the system
	byNumber := text != "" && strings.Trim(text, "0123456789") == ""
	if byNumber && (err != nil || number == none) {
		return nil, fmt.Errorf("user %s: the number is too large", text)
	}
	var u *user.User
	if byNumber {
		u, err = user.LookupId(strconv.FormatUint(number, 10))
		if errors.As(err, new(user.UnknownUserIdError)) {
			return &User{UID: int(number), GID: int(number)}, nil
		}
	} else {
		u, err = user.Lookup(text)
		if errors.As(err, new(user.UnknownUserError)) {
			return nil, fmt.Errorf("there is no user %q on this machine: name another, or a number", text)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("find user %s: %w", text, err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("find groups of user %s: %w", text, err)
	}
	found := &User{Name: u.Username}
	if filepath.IsAbs(u.HomeDir) {
		found.Home = filepath.Clean(u.HomeDir)
	}
	if found.UID, err = strconv.Atoi(u.Uid); err == nil {
		found.GID, err = strconv.Atoi(u.Gid)
	}
	for _, one := range groups {
		var group int
		if err == nil {
			group, err = strconv.Atoi(one)
		}
		found.Groups = append(found.Groups, group)
	}
	if err != nil {
		return nil, fmt.Errorf("find user %s: %w", text, err)
	}
	return found, nil
}
