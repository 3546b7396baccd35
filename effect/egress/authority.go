package egress

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/promptware-os/pwos/internal/replace"
)

// Authority is a certificate authority of this kernel. The name constraints of its certificate are the hosts of intercepted upstreams.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	now  func() time.Time

	mu     sync.Mutex
	leaves map[string]*leaf
}

type leaf struct {
	cert  tls.Certificate
	until time.Time
}

// OpenAuthority returns an authority for hosts with the key in a file. It creates the file if it does not exist, and returns an error
// if other users have permissions for it.
func OpenAuthority(file string, hosts []string, now func() time.Time) (*Authority, error) {
	key, err := readKey(file)
	if errors.Is(err, fs.ErrNotExist) {
		key, err = makeKey(file)
	}
	if err != nil {
		return nil, fmt.Errorf("open certificate authority: %w", err)
	}
	a := &Authority{key: key, now: now, leaves: map[string]*leaf{}}
	at := now()
	hosts = slices.Compact(slices.Sorted(slices.Values(hosts)))
	form := &x509.Certificate{
		Subject:   pkix.Name{CommonName: "pwos kernel: upstreams of agents"},
		NotBefore: at.Add(-time.Hour), NotAfter: at.AddDate(10, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign, PermittedDNSDomainsCritical: true, PermittedDNSDomains: hosts,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err == nil {
		a.cert, err = x509.ParseCertificate(der)
	}
	if err != nil {
		return nil, fmt.Errorf("make certificate of the authority: %w", err)
	}
	return a, nil
}

const keyType = "PRIVATE KEY"

func readKey(file string) (*ecdsa.PrivateKey, error) {
	info, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s may be used by other users: remove it, and a new key is made", file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != keyType {
		return nil, fmt.Errorf("%s holds no key: remove it, and a new one is made", file)
	}
	any, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	key, ok := any.(*ecdsa.PrivateKey)
	if err != nil || !ok {
		return nil, fmt.Errorf("%s holds no ECDSA key: remove it, and a new one is made", file)
	}
	return key, nil
}

// makeKey generates a key and writes it to a file atomically.
func makeKey(file string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: keyType, Bytes: der})
	return key, replace.File(file, text, 0o600)
}

// Certificate returns the authority's certificate in PEM.
func (a *Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// config returns the TLS configuration of a server for one host.
func (a *Authority) config(host string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return a.leaf(host) },
	}
}

// leafTime is the validity of a host's certificate, which is renewed after half of it.
const leafTime = 48 * time.Hour

func (a *Authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	at := a.now()
	if l := a.leaves[host]; l != nil && at.Before(l.until) {
		return &l.cert, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key for %s: %w", host, err)
	}
	form := &x509.Certificate{
		Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: at.Add(-time.Hour), NotAfter: at.Add(leafTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("make certificate for %s: %w", host, err)
	}
	l := &leaf{cert: tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, until: at.Add(leafTime / 2)}
	a.leaves[host] = l
	return &l.cert, nil
}
