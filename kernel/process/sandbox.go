package process

import (
	"path"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// checkSandbox refuses an invalid sandbox.
func checkSandbox(s *schema.Sandbox) *fault.Fault {
	if s == nil {
		return nil
	}
	for _, list := range []struct {
		name  string
		paths []string
	}{{"sandbox.read", s.Read}, {"sandbox.write", s.Write}, {"sandbox.hide", s.Hide}, {"sandbox.hold", s.Hold}} {
		for _, p := range list.paths {
			if !path.IsAbs(p) || path.Clean(p) != p || nul(p) {
				return kernel.Invalid(list.name, "must hold absolute paths without . and .. and trailing slashes, not %q", p)
			}
		}
	}
	for p, copied := range s.Copies {
		for _, p := range []string{p, copied} {
			if p != "" && (!path.IsAbs(p) || path.Clean(p) != p || nul(p)) || p == "/" {
				return kernel.Invalid("sandbox.copies", "must hold absolute paths without . and .. and trailing slashes, not %q", p)
			}
		}
	}
	if s.Named() == "off" && s.Review != nil {
		return kernel.Invalid("sandbox", "of level off has no review: without a sandbox the directory itself can be written; leave out review, or name another level")
	}
	if s.Named() == "off" && s.Copies != nil {
		return kernel.Invalid("sandbox", "of level off has no copies: leave them out, or name another level")
	}
	if s.Named() == "off" && (s.Read != nil || s.Write != nil || s.Hide != nil || s.Hold != nil || s.Network() != "open") {
		return kernel.Invalid("sandbox", "of level off confines nothing: leave out read, write, hide, hold and net, or name another level")
	}
	return nil
}

// levels and networks are in order from loose to tight.
func levels() []string   { return []string{"off", "default", "strict"} }
func networks() []string { return []string{"open", "kernel", "none"} }

// asTight is the advice about a sandbox that is looser than the spawner's.
const asTight = "confine it no less than its spawner is, or have the operator spawn it"

// looser refuses a sandbox that allows more than the spawner's own: in level, in what is read, written and shown, and
// in the network.
func looser(pid int64, own, asked *schema.Sandbox) *fault.Fault {
	if above(levels(), own.Named(), asked.Named()) {
		return fault.SandboxTooWide.New("pid %d may not spawn with sandbox %s: its own is %s", pid, asked.Named(), own.Named()).WithFix(asTight)
	}
	if own.Named() == "off" {
		return nil
	}
	if above(networks(), own.Network(), asked.Network()) {
		return fault.SandboxTooWide.New("pid %d may not spawn with sandbox.net %s: its own is %s", pid, asked.Network(), own.Network()).WithFix(asTight)
	}
	if own == nil {
		own = &schema.Sandbox{}
	}
	if asked == nil {
		asked = &schema.Sandbox{}
	}
	for _, p := range asked.Read {
		if !covered(p, own.Read) && !covered(p, own.Write) {
			return fault.SandboxTooWide.New("pid %d may not spawn with sandbox.read %s: its own sandbox does not name it", pid, p).WithFix(asTight)
		}
	}
	for _, p := range asked.Write {
		if !mayWrite(own, p) {
			return fault.SandboxTooWide.New("pid %d may not spawn with sandbox.write %s: its own sandbox does not name it, or only to read it", pid, p).WithFix(asTight)
		}
	}
	if p := unnamed(own, asked); p != "" {
		return fault.SandboxTooWide.New("pid %d may not spawn with sandbox.read or sandbox.write %s: its own sandbox does not name that file itself", pid, p).WithFix(asTight)
	}
	for _, p := range own.Hide {
		if !covered(p, asked.Hide) {
			return fault.SandboxTooWide.New("pid %d may not spawn without sandbox.hide %s, which is hidden from itself", pid, p).WithFix(asTight)
		}
	}
	if asked.Hold != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name sandbox.hold", pid).WithFix("only the operator may; leave it out, and what is held from its spawner is held from it")
	}
	if asked.Copies != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name sandbox.copies", pid).WithFix("only the operator may; leave them out, and it has those of its spawner")
	}
	if asked.Review != nil {
		return fault.CapabilityOperatorOnly.New("pid %d may not name sandbox.review", pid).WithFix("only the operator may; leave it out, and it works on the copy of its spawner")
	}
	if asked.AllowGaps != nil && *asked.AllowGaps && (own.AllowGaps == nil || !*own.AllowGaps) {
		return fault.SandboxTooWide.New("pid %d may not spawn with sandbox.allow_gaps: its own sandbox does not allow them", pid).WithFix(asTight)
	}
	return nil
}

// held returns a program with the directories that are held from its spawner. What the spawner may not read, it may not read through
// another program.
func (d *Domain) held(spawner int64, p schema.Program) schema.Program {
	own, ok := d.table.programs.Get(spawner)
	if !ok || p.Command == nil || p.Sandbox.Named() == "off" {
		return p
	}
	hold := own.Spec.Held()
	if hold == nil {
		return p
	}
	sandbox := schema.Sandbox{}
	if p.Sandbox != nil {
		sandbox = *p.Sandbox
	}
	sandbox.Hold = hold
	p.Sandbox = &sandbox
	return p
}

// above reports whether asked precedes own in an order from loose to tight.
func above(order []string, own, asked string) bool {
	return slices.Index(order, asked) < slices.Index(order, own)
}

// covered reports whether a path is in the list, or below an element of it.
func covered(p string, list []string) bool {
	return slices.ContainsFunc(list, func(dir string) bool {
		return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
	})
}

// copied returns a program with the copies and the review of its spawner, so that it writes where the spawner does. What is only writable to the spawner
// must be asked for.
func (d *Domain) copied(spawner int64, p schema.Program) schema.Program {
	own, ok := d.table.programs.Get(spawner)
	if !ok || p.Command == nil || own.Spec.Sandbox == nil || own.Spec.Sandbox.Copies == nil && own.Spec.Sandbox.Review == nil || p.Sandbox.Named() == "off" {
		return p
	}
	sandbox := schema.Sandbox{}
	if p.Sandbox != nil {
		sandbox = *p.Sandbox
	}
	sandbox.Review = own.Spec.Sandbox.Review
	if own.Spec.Sandbox.Copies == nil {
		p.Sandbox = &sandbox
		return p
	}
	sandbox.Copies = map[string]string{}
	for path, copied := range own.Spec.Sandbox.Copies {
		if path != copied || covered(path, writable(&p)) {
			sandbox.Copies[path] = copied
		}
	}
	p.Sandbox = &sandbox
	return p
}

// inherited returns a program with what its spawner's program imposes on it: the user, and what follows from its sandbox. It has the
// spawner's logins too: its grant says which upstreams it may use.
func (d *Domain) inherited(spawner int64, p schema.Program) schema.Program {
	own, ok := d.table.programs.Get(spawner)
	if ok && p.Command != nil && p.User == nil {
		p.User = own.Spec.User
	}
	if ok && p.Command != nil && p.Logins == nil && p.Sandbox.Network() == "kernel" {
		p.Logins = own.Spec.Logins
	}
	return d.copied(spawner, d.held(spawner, p))
}

// readOnly returns the paths that a program may only read in the places that another one, with the same directory or a part of what it may
// write, is to write.
func readOnly(own, p *schema.Program) (paths []string) {
	if own.Sandbox == nil || own.Sandbox.Named() == "off" {
		return nil
	}
	for _, path := range own.Sandbox.Read {
		if covered(path, writable(p)) && !mayWrite(own.Sandbox, path) && (p.Sandbox == nil || !covered(path, p.Sandbox.Read)) {
			paths = append(paths, path)
		}
	}
	return paths
}

// unnamed returns a path that a program asks for, and that the program of its spawner's sandbox does not name itself; "" if there is none.
// A file such as .env is shown to a program that names it, and a file that programs outside run, or that has a private copy, is written in
// its own place. So the spawner must name the file too; its directory is not enough.
func unnamed(own, asked *schema.Sandbox) string {
	for _, at := range slices.Concat(asked.Read, asked.Write) {
		if held.Named(path.Base(at)) && !slices.Contains(own.Read, at) && !slices.Contains(own.Write, at) {
			return at
		}
	}
	for _, at := range asked.Write {
		if _, copied := own.Copies[at]; (copied || held.Outside(at, false) != "") && !slices.Contains(own.Write, at) {
			return at
		}
	}
	return ""
}

// mayWrite reports whether a sandbox names a path to be written: of all that it names, the deepest that has the path counts, and of two
// equal ones the one to write.
func mayWrite(s *schema.Sandbox, at string) bool {
	deepest := func(list []string) (depth int) {
		for _, dir := range list {
			if covered(at, []string{dir}) {
				depth = max(depth, len(dir))
			}
		}
		return depth
	}
	write := deepest(s.Write)
	return write > 0 && write >= deepest(s.Read)
}
