package process

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// restoreFiles answers Process.RestoreFiles. The caller restores the files once this is journaled; nothing in the
// table changes.
func (d *Domain) restoreFiles(call *kernel.Call, in *schema.RestoreFilesInput) (out schema.RestoreFilesOutput, _ error) {
	if !strings.HasPrefix(in.Dir, "/") || nul(in.Dir) {
		return out, kernel.Invalid("dir", "must be an absolute path")
	}
	p := kernel.Visible(d.table, call, in.PID)
	switch {
	case p == nil || !d.table.known(in.PID):
		return out, kernel.NoProcess(in.PID)
	case p.State != terminated:
		return out, alive(in.PID, "pid %d is running", in.PID)
	case p.OSPID != nil || p.Command != nil && p.Exit == nil:
		return out, alive(in.PID, "the program of pid %d is still ending", in.PID).WithFix("try again in a moment")
	}
	if pid := d.worksIn(in.Dir); pid != 0 {
		return out, alive(pid, "pid %d is running in the same directory", pid)
	}
	return schema.RestoreFilesOutput{PID: in.PID}, nil
}

func alive(pid int64, format string, args ...any) *fault.Fault {
	return fault.ProcessAlive.New(format, args...).
		WithFix(`end it first: "pwos kill %d"`, pid).With("pid", strconv.FormatInt(pid, 10))
}

// worksIn returns a living process whose working directory is dir, lies in it or contains it; 0 if there is none.
func (d *Domain) worksIn(dir string) (found int64) {
	d.table.programs.Scan(func(pid int64, p *program) bool {
		if cwd := p.Spec.Cwd; cwd != nil && (within(*cwd, dir) || within(dir, *cwd)) {
			found = pid
		}
		return found == 0
	})
	return found
}

// within reports whether a path is dir or lies below it.
func within(path, dir string) bool {
	rest, below := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return below && (rest == "" || rest[0] == '/')
}
