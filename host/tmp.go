package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/internal/rmtree"
)

// tmp returns the program's directory for temporary files, as the host sees it.
func (c Command) tmp() string { return or(c.Tmp, filepath.Join(c.Dir, ".tmp")) }

// renewTmp makes an empty directory of the program's own. The system makes mount points in it, so it must have nothing of an
// earlier program, such as a link to another place.
func (c Command) renewTmp() error {
	if c.Tmp == "" {
		return nil
	}
	err := c.removeTmp()
	if err == nil {
		err = os.Mkdir(c.Tmp, 0o700)
	}
	if err == nil {
		mode := 0o777 | fs.ModeSticky // as /tmp
		if info, err := os.Stat(filepath.Dir(c.Tmp)); err != nil || info.Mode().Perm()&0o077 != 0 {
			mode = 0o700 // others would reach it
		}
		err = os.Chmod(c.Tmp, mode)
	}
	if err != nil {
		return withoutPath(err)
	}
	return c.User.Own(c.Tmp)
}

// removeTmp removes the program's own directory. Its processes must have ended.
func (c Command) removeTmp() error {
	if c.Tmp == "" {
		return nil
	}
	return rmtree.Dir(c.Tmp)
}

// shareTmp makes the directory in the working directory, which other programs there may have made before. It is only
// created, and never written to, so a link of the agent does no harm.
func (c Command) shareTmp() error {
	if c.Tmp != "" {
		return nil
	}
	if err := os.Mkdir(c.tmp(), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("make directory for temporary files: %w", err)
	}
	return c.User.Own(c.tmp())
}

// withoutPath returns an error without the path in it, which no client may see.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}
