package fetch

import "net/netip"

// kind says what is special about an address; "" is a public one.
type kind string

// The kinds that Options.AllowHosts opens: what a network of one's own is made of.
const (
	loopback kind = "a loopback address"
	private  kind = "a private address"
	shared   kind = "an address of the carrier's network"
)

func (k kind) own() bool { return k == loopback || k == private || k == shared }

// special is a row of the table of addresses that are not public.
type special struct {
	prefix string
	kind   kind
}

// specials are the registries of special-purpose addresses, and what else is no business of an agent. The first row that
// contains an address is its kind.
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
	return []special{
		{"169.254.169.254/32", metadata},
		{"169.254.0.0/16", linkLocal},
		{"100.100.100.200/32", metadata},
		{"168.63.129.16/32", metadata}, // public by its number, and answered by the host below
		{"0.0.0.0/8", here},
		{"10.0.0.0/8", private},
		{"100.64.0.0/10", shared},
		{"127.0.0.0/8", loopback},
		{"172.16.0.0/12", private},
		{"192.0.0.0/24", reserved},
		{"192.0.2.0/24", document},
		{"192.88.99.0/24", reserved},
		{"192.168.0.0/16", private},
		{"198.18.0.0/15", benchmark},
		{"198.51.100.0/24", document},
		{"203.0.113.0/24", document},
		{"224.0.0.0/4", multicast},
		{"240.0.0.0/4", reserved},

		{"fd00:ec2::254/128", metadata},
		{"fd20:ce::254/128", metadata},
		{"::1/128", loopback},
		{"::/128", here},
		{"::ffff:0:0/96", embedded},
		{"::/96", embedded},
		{"64:ff9b::/96", embedded},
		{"64:ff9b:1::/48", embedded},
		{"2002::/16", embedded},
		{"2001::/32", embedded},
		{"2001:2::/48", benchmark},
		{"2001::/23", reserved},
		{"2001:db8::/32", document},
		{"3fff::/20", document},
		{"3ffe::/16", reserved},
		{"fc00::/7", private},
		{"fe80::/10", linkLocal},
		{"fec0::/10", private},
		{"ff00::/8", multicast},
		// The rest of what is not global unicast.
		{"::/3", reserved},
		{"4000::/2", reserved},
		{"8000::/1", reserved},
	}
}

// gate judges addresses.
type gate struct {
	specials []prefixKind
	allow    []netip.Prefix
}

type prefixKind struct {
	netip.Prefix
	kind kind
}

func newGate(allow []netip.Prefix) gate {
	g := gate{allow: allow}
	for _, s := range specials() {
		g.specials = append(g.specials, prefixKind{netip.MustParsePrefix(s.prefix), s.kind})
	}
	return g
}

// judge returns why an address must not be dialled, "" if it may be. own opens the network of one's own.
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

// isatap reports whether an address embeds IPv4 by its interface identifier, under whatever prefix.
func isatap(a netip.Addr) bool {
	if !a.Is6() {
		return false
	}
	b := a.As16()
	return b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe
}
