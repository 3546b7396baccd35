package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/schema"
)

// overflow is the owner that the system shows for one that a user namespace does not have.
const overflow = 65534

// runUser is the user that a program runs as.
type runUser struct {
	other   *osuser.User // another than by default, which has homes of its own; nil: none
	chosen  string       // why it was chosen by pwos; "": it was not
	foreign string       // what follows from a working directory that is another user's; "": nothing
}

// chooseUser decides which user a program runs as: the one that the settings name, else user of [agents], else the owner of its
// working directory, else the kernel's user.
func chooseUser(program *schema.Program, home, runtimeDir string) (as runUser, err error) {
	kernel, err := uidOf(runtimeDir)
	if errors.Is(err, fs.ErrNotExist) { // the kernel will be started
		kernel, err = os.Geteuid(), nil
	}
	if err != nil {
		return as, fmt.Errorf("find the kernel's user: %w", err)
	}
	var named *osuser.User
	if program.User != nil {
		if named, err = osuser.Find(*program.User); err != nil {
			return as, fmt.Errorf("--user: %w", err)
		}
	}
	if kernel != 0 {
		if named != nil && named.UID != kernel {
			return as, fmt.Errorf("--user %s: this kernel is of user %d, and only one of user 0 can run a program as another: leave it out, or start the kernel as root", *program.User, kernel)
		}
		return as, nil
	}
	if os.Geteuid() != 0 { // an agent; the kernel decides
		return as, nil
	}
	usual := usualUser()
	runs, owner := named, -1
	if program.Cwd != nil {
		if owner, err = uidOf(*program.Cwd); err != nil {
			return as, fmt.Errorf("find the owner of the working directory: %w", err)
		}
	}
	switch {
	case runs != nil:
	case usual.UID == 0 && owner > 0 && owner != overflow && canBecome() && (home != "" || program.Sandbox.Named() != "off"): // its own home cannot be mounted then
		number := strconv.Itoa(owner)
		if runs, err = osuser.Find(number); err != nil {
			return as, err
		}
		program.User = &number
		as.chosen = fmt.Sprintf("it runs as %s, the owner of %s: --user 0 runs it as root", called(runs), *program.Cwd)
	default:
		runs = usual
	}
	if runs.UID != usual.UID {
		as.other = runs
	}
	if named == nil && owner > 0 && runs.UID != owner {
		of, err := osuser.Find(strconv.Itoa(owner))
		if err != nil {
			return as, err
		}
		fix := "--user " + cmp.Or(of.Name, strconv.Itoa(owner))
		if program.Sandbox.Named() == "off" && home == "" {
			fix += ", with a --home that may be entered,"
		}
		as.foreign = fmt.Sprintf("%s belongs to %s, and the program runs as %s: %s runs it as the owner", *program.Cwd, called(of), called(runs), fix)
	}
	return as, nil
}

// called is what people call a user.
func called(u *osuser.User) string {
	if u.Name == "" {
		return fmt.Sprintf("user %d", u.UID)
	}
	return u.Name
}

// as makes a process that this one starts run as a user.
func as(u *osuser.User) *syscall.SysProcAttr {
	groups := make([]uint32, 0, len(u.Groups))
	for _, group := range u.Groups {
		groups = append(groups, uint32(group))
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID), Groups: groups}}
}

// usualUser returns the user that programs of this user's kernel run as if they name none.
func usualUser() *osuser.User {
	if euid := os.Geteuid(); euid != 0 {
		return &osuser.User{UID: euid}
	}
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err == nil && cfg.Agents.User != "" { // an error is the kernel's to tell
		if u, err := osuser.Find(cfg.Agents.User); err == nil {
			return u
		}
	}
	return &osuser.User{Name: "root"}
}

// uidOf returns the owner of a directory.
func uidOf(path string) (int, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), nil
}
