package fetch

import "net/netip"

// kind is the text for the reserved use of an address; "" for a public address.
type kind string

// The kinds that Options.AllowHosts opens.
const (
	loopback kind = "a loopback address"
	private  kind = "a private address"
	shared   kind = "an address of the carrier's network"
)

func (k kind) own() bool { return k == loopback || k == private || k == shared }

// special is a row of the table of addresses that are not public.
type special struct {
	netip.Prefix
	kind kind
}

// specials returns the special-purpose addresses of the IANA registries, and other addresses that agents must not reach. The kind of an
// address is that of the first row that contains it.
func specials() []special {
	const (
		here      kind = "an address of this network"
		linkLocal kind = "a link-local address"
		metadata  kind = "a cloud's metadata service"
		reserved  kind = "a reserved address"
		document  kind = "an address for documentation"
		benchmark kind = "an address for benchmarks"
		multicast kind = "a multicast address"
		embedded  kind = "an IPv6 address that holds an IPv4 address"
	)
	p := netip.MustParsePrefix
	return []special{
		{p("169.254.169.254/32"), metadata},
		{p("169.254.0.0/16"), linkLocal},
		{p("100.100.100.200/32"), metadata},
		{p("168.63.129.16/32"), metadata}, // a public address that the hypervisor of a cloud answers
		{p("0.0.0.0/8"), here},
		{p("10.0.0.0/8"), private},
		{p("100.64.0.0/10"), shared},
		{p("127.0.0.0/8"), loopback},
		{p("172.16.0.0/12"), private},
		{p("192.0.0.0/24"), reserved},
		{p("192.0.2.0/24"), document},
		{p("192.88.99.0/24"), reserved},
		{p("192.168.0.0/16"), private},
		{p("198.18.0.0/15"), benchmark},
		{p("198.51.100.0/24"), document},
		{p("203.0.113.0/24"), document},
		{p("224.0.0.0/4"), multicast},
		{p("240.0.0.0/4"), reserved},

		{p("fd00:ec2::254/128"), metadata},
		{p("fd20:ce::254/128"), metadata},
		{p("::1/128"), loopback},
		{p("::/128"), here},
		{p("::ffff:0:0/96"), embedded},
		{p("::/96"), embedded},
		{p("64:ff9b::/96"), embedded},
		{p("64:ff9b:1::/48"), embedded},
		{p("2002::/16"), embedded},
		{p("2001::/32"), embedded},
		{p("2001:2::/48"), benchmark},
		{p("2001::/23"), reserved},
		{p("2001:db8::/32"), document},
		{p("3fff::/20"), document},
		{p("3ffe::/16"), reserved},
		{p("fc00::/7"), private},
		{p("fe80::/10"), linkLocal},
		{p("fec0::/10"), private},
		{p("ff00::/8"), multicast},
		// All other addresses that are not global unicast.
		{p("::/3"), reserved},
		{p("4000::/2"), reserved},
		{p("8000::/1"), reserved},
	}
}

// gate decides which addresses may be dialled.
type gate struct {
	specials []special
	allow    []netip.Prefix
}

// judge returns the kind of an address that must not be dialled, "" if it may be dialled. own opens the kinds of Options.AllowHosts.
func (g gate) judge(a netip.Addr, own bool) kind {
	if a.Zone() != "" || !a.IsValid() {
		return "an address of one interface"
	}
	for _, p := range g.allow {
		if p.Contains(a) {
			return ""
		}
	}
	for _, s := range g.specials {
		if !s.Contains(a) {
			continue
		}
		if own && s.kind.own() {
			return ""
		}
		return s.kind
	}
	if isatap(a) {
		return "an IPv6 address that holds an IPv4 address"
	}
	return ""
}

// isatap reports whether the interface identifier of an address embeds an IPv4 address (ISATAP), with any prefix.
func isatap(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	b := a.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
