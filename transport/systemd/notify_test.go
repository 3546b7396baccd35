package systemd_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/transport/systemd"
)

func TestNotify(t *testing.T) {
	t.Parallel()
	addresses := map[string]string{"path": filepath.Join(t.TempDir(), "n")}
	if runtime.GOOS == "linux" {
		addresses["abstract"] = "@pwos-test-notify-" + strconv.Itoa(os.Getpid())
	}
	for name, address := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: address, Net: "unixgram"})
			testkit.Must(t, err)
			defer manager.Close()
			getenv := func(string) string { return address }
			sent, err := systemd.Notify(getenv, systemd.Ready, systemd.Status("serving\non two lines"))
			if !sent || err != nil {
				t.Fatalf("got %v, %v", sent, err)
			}
			testkit.Must(t, manager.SetReadDeadline(time.Now().Add(10*time.Second)))
			datagram := make([]byte, 200)
			n, err := manager.Read(datagram)
			testkit.Must(t, err)
			if got, want := string(datagram[:n]), "READY=1\nSTATUS=serving on two lines"; got != want {
				t.Errorf("sent %q, want %q", got, want)
			}
		})
	}
}

func TestNotifyNobody(t *testing.T) {
	t.Parallel()
	tests := []struct {
		address string
		wantErr bool
	}{
		{"", false},
		{filepath.Join(t.TempDir(), "gone"), true},
		{"relative", true},
		{"vsock:2:1234", true},
	}
	for _, tt := range tests {
		sent, err := systemd.Notify(func(string) string { return tt.address }, systemd.Stopping)
		if sent || (err != nil) != tt.wantErr {
			t.Errorf("%q: got %v, %v", tt.address, sent, err)
		}
	}
}
