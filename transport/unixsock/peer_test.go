package unixsock_test

import (
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/transport/unixsock"
)

func TestPeerOfBothEnds(t *testing.T) {
	t.Parallel()
	places := privatePlaces(t)
	accepted := make(chan access.Peer, 1)
	serveRaw(t, places.KernelSocket, func(conn net.Conn) {
		peer, err := unixsock.PeerOf(conn)
		if err != nil {
			t.Error(err)
		}
		accepted <- peer
	})
	conn, err := net.Dial("unix", places.KernelSocket)
	must(t, err)
	defer conn.Close()
	listening, err := unixsock.PeerOf(conn)
	must(t, err)

	want := access.Peer{PID: os.Getpid(), UID: os.Geteuid(), GID: os.Getegid()}
	if got := <-accepted; got != want {
		t.Errorf("accepting end sees %+v, want %+v", got, want)
	}
	if listening != want {
		t.Errorf("connecting end sees %+v, want %+v", listening, want)
	}
}

func TestPeerOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	for _, uid := range []int{0, os.Geteuid()} {
		must(t, unixsock.CheckPeer(access.Peer{UID: uid}))
	}
	for _, uid := range []int{os.Geteuid() + 1, os.Geteuid() + 2, -1} {
		err := unixsock.CheckPeer(access.Peer{PID: 7, UID: uid})
		if !errors.Is(err, fault.AuthPeer) || fault.Of(err).Detail("uid") != strconv.Itoa(uid) {
			t.Errorf("user %d: got %v, want fault.AuthPeer", uid, err)
		} else if !strings.Contains(err.Error(), "process 7") {
			t.Errorf("%q does not name the process", err)
		}
	}
}

func TestPeerOfAnotherConnection(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := unixsock.PeerOf(a); !errors.Is(err, unixsock.ErrNoCredentials) {
		t.Errorf("pipe: got %v, want ErrNoCredentials", err)
	}
}
