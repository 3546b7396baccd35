package process

import (
	"slices"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// cut returns what a spawn asks for without what its spawner, an agent, does not have itself (Syscall.Spawn.cut).
func (d *Domain) cut(call *kernel.Call, in *schema.SpawnInput) *schema.SpawnInput {
	if in.Cut == nil || !*in.Cut || call.PID == kernel.Operator {
		return in
	}
	less := *in
	less.Program, less.Cut = d.cutProgram(call.PID, in), nil
	if in.Capabilities != nil && call.Token != nil {
		less.Capabilities = call.Token.Cut(in.Capabilities, call.Tick)
	}
	return &less
}

// cutProgram is the part of cut that follows from the programs alone.
func (d *Domain) cutProgram(spawner int64, in *schema.SpawnInput) schema.Program {
	p := in.Program
	if run, ok := d.table.programs.Get(spawner); ok && p.Command != nil && in.Cut != nil && *in.Cut {
		p.Sandbox, p.Limits = narrowed(&run.Spec, &p), atMost(run.Spec.Limits, p.Limits)
	}
	return p
}

// narrowed returns the sandbox of a program without what its spawner's does not allow.
func narrowed(own, p *schema.Program) *schema.Sandbox {
	s := schema.Sandbox{}
	if p.Sandbox != nil {
		s = *p.Sandbox
	}
	if own.Sandbox.Named() == "off" {
		return p.Sandbox
	}
	tightest := func(order []string, a, b string) *string {
		return &order[max(slices.Index(order, a), slices.Index(order, b))]
	}
	s.Level, s.Net = tightest(levels(), own.Sandbox.Named(), p.Sandbox.Named()), tightest(networks(), own.Sandbox.Network(), p.Sandbox.Network())
	narrow := own.Sandbox
	if narrow == nil {
		narrow = &schema.Sandbox{}
	}
	s.Read = slices.DeleteFunc(slices.Clone(s.Read), func(at string) bool { return !covered(at, narrow.Read) && !covered(at, narrow.Write) })
	s.Write = slices.DeleteFunc(slices.Clone(s.Write), func(at string) bool { return !mayWrite(narrow, at) })
	s.Read = append(slices.Clip(s.Read), readOnly(own, &schema.Program{Cwd: p.Cwd, Sandbox: &s})...)
	for _, at := range narrow.Hide {
		if !covered(at, s.Hide) {
			s.Hide = append(slices.Clip(s.Hide), at)
		}
	}
	if narrow.AllowGaps == nil || !*narrow.AllowGaps {
		s.AllowGaps = nil
	}
	return &s
}

// atMost returns limits that do not exceed the spawner's.
func atMost(own, asked *schema.Limits) *schema.Limits {
	if own == nil {
		return asked
	}
	less := schema.Limits{}
	if asked != nil {
		less = *asked
	}
	for _, limit := range limitsOf(own, &less) {
		if limit.own != nil && (*limit.asked == nil || **limit.asked > *limit.own) {
			*limit.asked = limit.own
		}
	}
	return &less
}

// writable are the paths that a program may write, of those that it names.
func writable(p *schema.Program) (paths []string) {
	if p.Sandbox != nil {
		paths = p.Sandbox.Write
	}
	if p.Cwd != nil {
		paths = append(slices.Clip(paths), *p.Cwd)
	}
	return paths
}
