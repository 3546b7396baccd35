package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/promptware-os/pwos/cmd/pwos/internal/gitdirs"
	"github.com/promptware-os/pwos/schema"
)

// safeDirectories returns the setting by which git takes the repositories of a program's project although they are another user's. A kernel
// of user 0 may run the program as any user, so that there all of them are named.
func safeDirectories(program *schema.Program) string {
	if program.Cwd == nil {
		return ""
	}
	var dirs []string
	for at := *program.Cwd; ; at = filepath.Dir(at) { // git looks for one above too
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil && at != *program.Cwd {
			dirs = append(dirs, at)
			break
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	var b strings.Builder
	for _, at := range append(dirs, gitdirs.Search([]string{*program.Cwd})...) {
		for _, dir := range []string{at, filepath.Join(at, ".git")} { // as a repository that is worked in, and that is cloned
			info, err := os.Lstat(dir)
			if err != nil || !info.IsDir() || strings.ContainsFunc(dir, unicode.IsControl) {
				continue
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && (os.Geteuid() == 0 || int(st.Uid) != os.Geteuid()) {
				fmt.Fprintf(&b, "[safe]\n\tdirectory = \"%s\"\n", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(dir))
			}
		}
	}
	return b.String()
}
