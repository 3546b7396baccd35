package cluster

import (
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// unreached returns the error of an attempt to reach the bus with what to do about it.
func unreached(err error) error {
	var authority x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var host x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return errors.New("its certificate is of an authority that this kernel does not know: set cluster.authority to the PEM file of that authority's certificate")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && time.Now().Before(invalid.Cert.NotBefore):
		return fmt.Errorf("its certificate is valid from %s: set the clock of this host, or wait until then", invalid.Cert.NotBefore.UTC().Format(time.RFC3339))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("its certificate expired at %s: have a new one issued, and start pwos-bus again with it", invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	case errors.As(err, &host):
		return fmt.Errorf("its certificate is for %s, not for %s: use one of these names in cluster.bus, or have a certificate issued for %[2]s", strings.Join(namesOf(host.Certificate), ", "), host.Host)
	case errors.Is(err, nats.ErrSecureConnWanted):
		return errors.New("it does not use TLS: start pwos-bus with --cert and --key, or use nats:// in cluster.bus")
	case errors.Is(err, nats.ErrAuthorization):
		return errors.New(`it does not know the key of this kernel, or its line there has expired: add the line that "pwos cluster key" prints to its members, and reload it with SIGHUP`)
	}
	return err
}

// namesOf returns the names and addresses that a certificate is for.
func namesOf(c *x509.Certificate) []string {
	list := append([]string{}, c.DNSNames...)
	for _, ip := range c.IPAddresses {
		list = append(list, ip.String())
	}
	if len(list) == 0 {
		return []string{"no name and no address"}
	}
	return list
}
