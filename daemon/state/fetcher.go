package state

import (
	"crypto/x509"
	"fmt"
	"net/netip"
	"os"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/fetch"
)

// Fetcher makes what fetches as the configuration says.
func Fetcher(cfg *config.HTTP, version string) (*fetch.Fetcher, error) {
	o := fetch.Options{UserAgent: "pwos/" + version, Limits: fetch.Limits{WireBytes: cfg.MaxBodyBytes, BodyBytes: cfg.MaxBodyBytes}}
	for _, text := range cfg.Allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow: %w", err)
		}
		o.Allow = append(o.Allow, prefix)
	}
	for _, text := range cfg.AllowHosts {
		host, err := fetch.ParseHost(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow_hosts: %w", err)
		}
		o.AllowHosts = append(o.AllowHosts, host)
	}
	if cfg.CAFile != "" {
		text, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.ca_file: %w", err)
		}
		if o.RootCAs, err = x509.SystemCertPool(); err != nil {
			o.RootCAs = x509.NewCertPool()
		}
		if !o.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("configuration: http.ca_file: %s holds no certificate", cfg.CAFile)
		}
	}
	return fetch.New(o), nil
}
