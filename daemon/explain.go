package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// explain says what a program would have around it. It makes nothing, so that of the directories that a start makes none is in the answer.
func (d *Daemon) explain(ctx context.Context, p *schema.Program) (out schema.Surroundings, err error) {
	c := actors.Confined(p)
	if p.Cwd == nil {
		c.Dir = filepath.Join(real(d.agentsDir()), "0", "work") // as that of a process, of which there is none with this number
		c.Places = []host.Place{{Target: c.Dir, Write: true}}
	} else {
		c.Dir = filepath.Clean(*p.Cwd)
		c.ReadOnly = slices.Contains(c.Read, c.Dir)
		if err := host.Apart(c.Dir, d.hosting().Private, trusted(d.config)); err != nil {
			return out, unstarted(err)
		}
	}
	if c.User, err = d.programs.UserOf(p.User); err != nil {
		return out, unstarted(err)
	}
	if c.User != nil {
		out.User = c.User.Name
	}
	out.Read = slices.Clone(c.Read)
	d.bar(&c)
	programs, err := d.programs.Host()
	if err != nil {
		return out, err
	}
	shown, level, err := programs.Explain(c)
	if err != nil {
		return out, unstarted(err)
	}
	out.Sandbox, out.Level, out.Net = level, string(c.Sandbox), string(c.Net)
	if c.Sandbox != host.SandboxOff {
		out.Gaps = programs.Gaps()
	}
	out.Write, out.Hidden, out.Masked, out.Held = shown.Write, shown.Hidden, shown.Masked, shown.Held
	out.HiddenCount = int64(len(shown.Hidden))
	if p.Cwd == nil {
		out.Write = slices.DeleteFunc(out.Write, func(path string) bool { return path == c.Dir })
	} else {
		out.Dir = c.Dir
	}
	out.Secret = d.secrets(ctx, &c, &shown)
	if d.trees == nil || p.Cwd == nil {
		return out, nil
	}
	dirs := d.writableDirs(&c)
	if p.Sandbox != nil && p.Sandbox.Review != nil {
		if out.Review, err = d.trees.Reviewed(*p.Sandbox.Review, c.Dir, homeOf(&c)); err != nil {
			return out, unstarted(err)
		}
		copied := func(path string) bool { return path == out.Review || strings.HasPrefix(path, out.Review+"/") }
		out.Write, dirs = slices.DeleteFunc(out.Write, copied), slices.DeleteFunc(dirs, copied)
	}
	if !c.ReadOnly {
		out.Kept, out.NotKept = d.trees.Explain(dirs, homeOf(&c))
	}
	return out, nil
}

// unstarted is the error of a start that would fail.
func unstarted(err error) error {
	return fault.ProcessNotStarted.New("the program would not start: %v", err)
}

// secrets searches what a program may read for files that look secret.
func (d *Daemon) secrets(ctx context.Context, c *host.Command, shown *host.Shown) []string {
	dirs := slices.Concat(c.Read, c.Write)
	if c.Dir != "" {
		dirs = append([]string{c.Dir}, dirs...)
	}
	if home := homeOf(c); c.Sandbox == host.SandboxDefault && home != "" {
		dirs = append(dirs, home)
	}
	seen := map[string]bool{}
	return held.Secrets(ctx, dirs, schema.MaxExplained, func(path string) bool {
		if seen[path] || !shown.Shows(path) {
			return true
		}
		seen[path] = true
		return false
	})
}
