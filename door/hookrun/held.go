package hookrun

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/promptware-os/pwos/door/preset"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// heldFrom returns why a tool cannot change the file that its input names, if that is one that programs outside run, and an agent may only
// read; nil otherwise. The tool would only say that the file system is read-only.
func heldFrom(use *schema.ToolUseInput) error {
	host := preset.Named(use.Host)
	if host == nil || !slices.Contains(host.Tools.Write, use.Tool) {
		return nil
	}
	members, err := schema.TypeOf[map[string]schema.Value]().Decode(use.Input)
	if err != nil {
		return nil // the tool says so
	}
	for _, member := range []string{"file_path", "notebook_path", "path", "filePath"} {
		value, given := (*members.(*map[string]schema.Value))[member]
		if !given {
			continue
		}
		path, err := schema.TypeOf[string]().Decode(value)
		if err != nil {
			continue
		}
		at, bad := filepath.Abs(*path.(*string))
		if bad != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(filepath.Dir(at)); err == nil {
			at = filepath.Join(real, filepath.Base(at))
		}
		if of := held.Outside(at, false); of != "" && errors.Is(syscall.Access(of, 2), syscall.EROFS) { // to write it
			return fmt.Errorf("%s is read-only for agents, since programs of the user run what it says as soon as they see it. Do not try it otherwise: ask the user to change it, or to allow it with %s for agents that start from then on, or for one with %s",
				quote.Text(of), quote.Command("pwos", "project", "allow", of), quote.Command("pwos", "run", "--write", of))
		}
	}
	return nil
}
