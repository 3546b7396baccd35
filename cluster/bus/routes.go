package bus

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/promptware-os/pwos/access"
)

// Links between nodes use TLS 1.3, and each node knows the keys of the others: those that the members file names. No authority
// issues certificates. A node signs its own with the key in its directory, and nothing of a certificate but the key is looked at.

// handshakeSeconds bounds the handshake of a link.
const handshakeSeconds = 5

// NodeLine returns the line of a node for the members file. It makes the key of the node in the directory if there is none.
func NodeLine(dir, name string) (string, error) {
	key, err := access.OpenHostKey(dir)
	if err != nil {
		return "", err
	}
	return lineOf(name, key), nil
}

func lineOf(name string, key *access.HostKey) string {
	return `node="` + name + `" ` + key.Public()
}

// setLinks sets the options for links to other nodes.
func (s Settings) setLinks(o *server.Options) (err error) {
	c := &o.Cluster
	c.Name = "pwos"
	if c.Host, c.Port, err = address(s.Peers, "--peers"); err != nil {
		return err
	}
	c.Port = random(c.Port)
	to := s.Routes
	if len(to) == 0 { // the server wants a route; that to itself it leaves alone
		to = []string{s.Peers}
	}
	if o.Routes, err = routes(to); err != nil {
		return err
	}
	key, err := access.OpenHostKey(s.Dir)
	if err != nil {
		return err
	}
	keys, err := s.nodeKeys(key)
	if err != nil {
		return err
	}
	certificate, err := key.Certificate("pwos-bus")
	if err != nil {
		return fmt.Errorf("make certificate of the node: %w", err)
	}
	c.TLSTimeout = handshakeSeconds
	if c.TLSPinnedCerts, err = pinsOf(keys); err != nil { // beside check, since a reload ends links whose pin is removed
		return err
	}
	c.TLSConfig = &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAnyClientCert,
		InsecureSkipVerify: true, // the key is checked, and not who vouches for it
		VerifyConnection:   func(state tls.ConnectionState) error { return check(keys, state) },
	}
	return nil
}

// nodeKeys returns the keys of the nodes in the members file. It fails if this node is not there: the others would refuse it.
func (s Settings) nodeKeys(own *access.HostKey) (keys []access.PublicKey, err error) {
	for _, node := range current(s.Members.Nodes()) {
		if node.Key == own.Key() && node.Node != s.Name {
			return nil, fmt.Errorf("the members file names this node %s: start it with --name %[1]s, or correct the line with its key", node.Node)
		}
		keys = append(keys, node.Key)
	}
	if !slices.Contains(keys, own.Key()) {
		return nil, fmt.Errorf("the members file does not name this node, so the others refuse it: add this line to the members file of each node, and send SIGHUP to those that run:\n%s", lineOf(s.Name, own))
	}
	return keys, nil
}

// pinsOf returns the hashes that NATS identifies keys with.
func pinsOf(keys []access.PublicKey) (server.PinnedCertSet, error) {
	set := server.PinnedCertSet{}
	for _, key := range keys {
		der, err := x509.MarshalPKIXPublicKey(key.Ed25519())
		if err != nil {
			return nil, fmt.Errorf("pin key of a node: %w", err)
		}
		hash := sha256.Sum256(der)
		set[hex.EncodeToString(hash[:])] = struct{}{}
	}
	return set, nil
}

// check refuses the other end of a link if its key is not one of keys.
func check(keys []access.PublicKey, state tls.ConnectionState) error {
	shown, err := access.ShownKey(&state)
	if err != nil {
		return fmt.Errorf("the other end is no node of pwos-bus: %w", err)
	}
	if !slices.Contains(keys, shown) {
		return fmt.Errorf("no line of the members file names a node with the key %s", shown.Fingerprint())
	}
	return nil
}

// routes returns the addresses of other nodes.
func routes(texts []string) (all []*url.URL, err error) {
	for _, text := range texts {
		at := strings.TrimPrefix(text, "nats://")
		if _, _, err := address(at, "--route"); err != nil {
			return nil, err
		}
		all = append(all, &url.URL{Scheme: "nats", Host: at})
	}
	return all, nil
}
