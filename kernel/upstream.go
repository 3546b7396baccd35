package kernel

import "github.com/promptware-os/pwos/schema"

// AllowsUpstream reports whether the holder may use the upstream at tick. * does not include upstreams: the credential behind
// one is granted by its name, or by Upstream:* for all.
func (t *Token) AllowsUpstream(name string, tick int64) bool {
	return t.AllowsNamed(upstreamWord+":"+name, tick)
}

// UpstreamLacking returns the PID of the first token on the way up from that of pid that does not name the upstream: the one to
// add to.
func (t *Token) UpstreamLacking(pid, tick int64, name string) int64 {
	return t.lacking(pid, tick, func(g *schema.TokenGrant) bool { return anyCovers(g.AllowedSyscalls, upstreamWord+":"+name) })
}

// Hosts are the patterns of the hosts that the holder may connect to at tick.
func (t *Token) Hosts(tick int64) []string {
	if sum := sumHTTP(t.Fetch(tick)); sum != nil {
		return sum.Hosts
	}
	return nil
}
