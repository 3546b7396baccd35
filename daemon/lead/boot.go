package lead

import (
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/internal/replace"
)

// In quorum mode, entries are sent while they are synced, so a crash of the machine may leave entries in the
// stream that the journal does not have. The file boot in the state directory has the id of the machine's start during which
// the journal was last compared with the stream, or was begun. While it runs, the page cache has all that was sent.

func (h *Host) bootFile() string { return filepath.Join(h.Config.StateDir, "boot") }

// sameBoot reports whether the journal has been compared with the stream since the machine was started. It is false if that
// is not known.
func (h *Host) sameBoot() bool {
	text, err := os.ReadFile(h.bootFile())
	return err == nil && len(text) > 0 && string(text) == bootID()
}

// keepBoot records that the journal was compared with the stream.
func (h *Host) keepBoot() error {
	if h.sameBoot() {
		return nil
	}
	return replace.File(h.bootFile(), []byte(bootID()), 0o600)
}
