//go:build !linux

package journal

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func directoryID(dir string) (string, error) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return "", fmt.Errorf("look at %s: %w", dir, err)
	}
	return fmt.Sprint(st.Ino), nil
}
