package fetch_test

import (
	"context"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/internal/testkit"
)

// untouched returns options with which a lookup or a connection fails the test.
func untouched(t testing.TB) fetch.Options {
	t.Helper()
	return fetch.WithDial(fetch.Options{Resolver: noLookup{t}}, func(_ context.Context, _, address string) (net.Conn, error) {
		t.Errorf("connects to %s", address)
		return nil, net.ErrClosed
	})
}

type noLookup struct{ t testing.TB }

func (n noLookup) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.t.Errorf("looks up %s", host)
	return nil, net.ErrClosed
}

// public returns options with which every name has a public address, and connecting fails with err.
func public(err error) fetch.Options {
	return fetch.WithDial(fetch.Options{Resolver: always{"93.184.215.14"}}, func(context.Context, string, string) (net.Conn, error) {
		return nil, err
	})
}

// always is a resolver with the same addresses for every name.
type always []string

func (a always) LookupNetIP(ctx context.Context, network, _ string) ([]netip.Addr, error) {
	return names{"": a}.LookupNetIP(ctx, network, "")
}

// trap listens on every address of this machine and counts connections.
type trap struct {
	port    string
	touched atomic.Int64
}

func setTrap(t testing.TB) *trap {
	t.Helper()
	ln, err := net.Listen("tcp", ":0")
	testkit.Must(t, err)
	tr := &trap{}
	_, tr.port, err = net.SplitHostPort(ln.Addr().String())
	testkit.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			tr.touched.Add(1)
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() {
		testkit.Must(t, ln.Close())
		<-done
	})
	return tr
}
