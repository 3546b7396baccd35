package kernel

// AllowsUpstream reports whether the holder may use the upstream at tick. * does not include upstreams: the credential behind
// one is granted by its name, or by Upstream:* for all.
func (t *Token) AllowsUpstream(name string, tick int64) bool {
	return t.AllowsNamed(upstreamWord+":"+name, tick)
}

// Hosts are the patterns of the hosts that the holder may connect to at tick.
func (t *Token) Hosts(tick int64) []string {
	if t == nil {
		return nil
	}
	var hosts []string
	for _, g := range t.Fetch(tick) {
		hosts = append(hosts, g.Hosts...)
	}
	return hosts
}
