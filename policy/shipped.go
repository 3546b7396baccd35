package policy

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// shipped are rules about programs, of profiles that are part of the program.
//
//go:embed shipped/*.cedar
var embedded embed.FS

// Shipped returns the text of the rules that are part of the program for a profile; nil if there are none.
func Shipped(profile string) []byte {
	text, err := fs.ReadFile(embedded, "shipped/"+profile+".cedar")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil // no name of a file
	}
	return text
}

// shippedRules returns them as the judge uses them, by profile. They are valid: a test compiles them.
func shippedRules(judge Judge) map[string]*holding {
	all := make(map[string]*holding)
	names, err := fs.Glob(embedded, "shipped/*.cedar")
	if err != nil {
		panic(err) // the pattern is valid
	}
	for _, name := range names {
		profile := strings.TrimSuffix(strings.TrimPrefix(name, "shipped/"), ".cedar")
		set, problems := Compile([]File{{rulesOf(profile), Shipped(profile)}})
		if set == nil {
			panic(fmt.Sprint(problems))
		}
		all[profile] = newHolding(judge, set)
	}
	return all
}

// rulesOf returns the name of the user's rules of a profile, which replace those that are part of the program.
func rulesOf(profile string) string { return "profiles/" + profile + ".cedar" }

// ofProfile returns the rules that are part of the program for what a process executes, beside those that the guard holds; nil if there are
// none for it. These stop what is honest, so that what cannot be looked at is not refused.
func (g *Guard) ofProfile(pid int64, h *holding) *holding {
	profile := g.judge.profile(pid)
	if profile == "" || h != nil && (h.invalid != "" || slices.Contains(h.Files, rulesOf(profile))) {
		return nil
	}
	return g.shipped()[profile]
}

// forCall returns what judges a call: the rules that the guard holds or, if none of them decides about an exec or a tool of a host, whose
// command may name programs, those of ofProfile.
func (g *Guard) forCall(call *kernel.Call, h *holding) *holding {
	switch in := call.Input.(type) {
	case *schema.ProgramExecInput:
		if in.Hidden || in.Cut {
			return h
		}
	case *schema.ToolUseInput:
	default:
		return h
	}
	of := g.ofProfile(call.PID, h)
	if of == nil || h != nil && h.Decide(call).Rule != nil {
		return h
	}
	return of
}

// profile returns the profile that a process or the one that it comes from runs under; "" if there is none.
func (j *Judge) profile(pid int64) string {
	p := j.Processes.Process(pid)
	for p != nil && p.ParentPID != kernel.Operator {
		p = j.Processes.Process(p.ParentPID)
	}
	if p == nil {
		return ""
	}
	name, ok := strings.CutPrefix(p.Intent, ProfileIntent)
	if !ok {
		return ""
	}
	return name
}
