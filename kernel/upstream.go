package kernel

import (
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// anyUpstream is the pattern of all upstreams.
const anyUpstream = schema.UpstreamPrefix + "*"

// AllowsUpstream reports whether the holder may use the upstream at tick. * does not include upstreams: the credential behind
// one is granted by its name, or by Upstream:* for all.
func (t *Token) AllowsUpstream(name string, tick int64) bool {
	return t != nil && !t.Expired(tick) && t.namesUpstream(name)
}

// Hosts are the patterns of the hosts that the holder may connect to at tick.
func (t *Token) Hosts(tick int64) []string {
	if t == nil || t.HTTP == nil || t.Expired(tick) {
		return nil
	}
	return t.HTTP.Hosts
}

func (t *Token) namesUpstream(name string) bool {
	for _, own := range t.AllowedSyscalls {
		if own == anyUpstream || own == schema.UpstreamPrefix+name {
			return true
		}
	}
	return false
}

// upstreamPattern reports whether a pattern stands for upstreams, and for which: a name or *.
func upstreamPattern(pattern string) (name string, ok bool) {
	return strings.CutPrefix(pattern, schema.UpstreamPrefix)
}
