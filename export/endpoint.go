package export

import (
	"net"
	"net/netip"
	"net/url"

	"github.com/promptware-os/pwos/schema/fault"
)

// Endpoint reads the address of a receiver. Over http, which anybody on the way can read, it must be on this machine.
func Endpoint(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return nil, fault.UsageInvalid.New("%q is no address such as https://collector.example:4318", text)
	case u.User != nil:
		return nil, fault.UsageInvalid.New("the address must not have a password in it, which other programs could see: give it as a header")
	case u.Scheme == "https":
	case u.Scheme != "http":
		return nil, fault.UsageInvalid.New("%q must begin with https://, or on this machine with http://", text)
	case !Loopback(u.Hostname()):
		return nil, fault.UsageInvalid.New("%q would send the record in the clear: use https:// to leave this machine", text)
	}
	return u, nil
}

// Loopback reports whether a host is this machine, by its name or its address.
func Loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// LoopbackListen reports whether an address to listen on, HOST:PORT, is this machine's alone.
func LoopbackListen(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && Loopback(host)
}
