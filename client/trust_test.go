package client_test

import (
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// TestDialKnowsItsKernel: a client signs nothing for another kernel in the place of the known one, nor for one that no
// longer asks for a key.
func TestDialKnowsItsKernel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	line := writeKey(t, path, "")
	k := startKeyed(t, line)
	o := k.options(path)
	_, err := k.dialAs(t, o)
	testkit.Must(t, err)
	key, err := client.HostKey(testkit.Context(t), o)
	testkit.Must(t, err)
	k.stop()

	k.run(t, "another", line)
	_, err = k.dialAs(t, o)
	if e := refusedLogin(t, err, fault.AuthHostChanged); strings.Contains(e.Error(), "offered") || !strings.Contains(e.Error(), "pwos auth trust --forget") || !strings.Contains(e.Error(), key.Fingerprint()) {
		t.Errorf("the error is %q", e)
	}
	if other, err := client.HostKey(testkit.Context(t), o); err != nil || other == key || other.IsZero() {
		t.Errorf("the host key is %v, %v", other, err)
	}
	k.stop()

	k.run(t, "open")
	_, err = k.dialAs(t, o)
	refusedLogin(t, err, fault.AuthDowngraded)
	if open, err := client.HostKey(testkit.Context(t), o); err != nil || !open.IsZero() {
		t.Errorf("the host key is %v, %v", open, err)
	}
	name, err := o.KernelName()
	testkit.Must(t, err)
	testkit.Must(t, k.known.Forget(t.Context(), name))
	_, err = k.dialAs(t, o)
	testkit.Must(t, err)
}

// TestDialThroughARelay: a client detects a relay between it and the kernel, also one that forwards everything.
func TestDialThroughARelay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "key")
	k := startKeyed(t, writeKey(t, path, ""))
	between := tempPlaces(t)
	testkit.Must(t, unixsock.EnsurePrivateDir(between.Dir))
	ln, err := net.Listen("unix", between.KernelSocket)
	testkit.Must(t, err)
	var relaying sync.WaitGroup
	relaying.Go(func() {
		client, err := ln.Accept()
		if err != nil {
			return
		}
		kernel, err := net.Dial("unix", k.places.KernelSocket)
		if err != nil {
			t.Error(err)
			return
		}
		relaying.Go(func() {
			_, _ = io.Copy(client, kernel)
			_ = client.Close()
		})
		said, _ := io.ReadAll(client)
		if len(said) > 0 {
			t.Errorf("the client sent the relay %s", said)
		}
		_ = kernel.Close()
	})
	t.Cleanup(func() {
		_ = ln.Close()
		relaying.Wait()
	})
	o := k.options(path)
	o.RuntimeDir = between.Dir
	_, err = k.dialAs(t, o)
	refusedLogin(t, err, fault.AuthHost)
	if known, err := k.known.List(); err != nil || len(known) != 0 {
		t.Errorf("the client stored %v, %v", known, err)
	}
}
