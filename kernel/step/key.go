package step

import "github.com/promptware-os/pwos/schema"

// Every is the tool of a Step.End that ends all calls of a session: the host has lost sight of them.
const Every = "*"

// Key names a tool call among those of its process, as its host does.
type Key struct{ Host, Session, Call string }

// KeyOf returns the key of a tool call. use is the host's name for it; nil: it is the only call of the tool.
func KeyOf(host, session, tool string, use *string) Key {
	if use != nil {
		return Key{host, session, "use " + *use}
	}
	return Key{host, session, "tool " + tool}
}

// EndedBy reports whether a Step.End ends the call.
func (k Key) EndedBy(in *schema.StepEndInput) bool {
	if in.Tool == Every {
		return k.Host == in.Host && k.Session == in.Session
	}
	return k == KeyOf(in.Host, in.Session, in.Tool, in.Use)
}
