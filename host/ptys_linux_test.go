package host_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// TestPtys: a program opens pseudo-terminals of its own, and those of others with none of the means that the machine has.
func TestPtys(t *testing.T) {
	t.Parallel()
	h := open(t)
	_, theirs := pair(t)
	terminal(t, theirs) // so that it exists
	for name, take := range map[string]func(*host.Means){
		"all":           func(*host.Means) {},
		"no Landlock":   func(m *host.Means) { m.ABI = 0 },
		"no terminals":  func(m *host.Means) { m.Ptys = false },
		"no mounts":     func(m *host.Means) { m.Mounts, m.Overlay, m.Ptys = false, false, false },
		"no namespaces": func(m *host.Means) { *m = host.Means{ABI: m.ABI, Filter: m.Filter} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			has := host.MeansOf(h)
			take(&has)
			c := shell(t, `(exec 5<>/dev/ptmx) 2>/dev/null && echo opened >&2
				(echo spoofed >`+theirs+`) 2>/dev/null && echo theirs >&2
				for at in /dev/pts/[0-9]*; do [ -e $at ] && echo seen >&2; done; exit 0`)
			c.Log.Path = filepath.Join(t.TempDir(), "log")
			p, err := host.StartAt(t.Context(), h, c, has)
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
			if exit := wait(t, p); exit.Code != 0 {
				t.Errorf("%v", exit)
			}
			said := string(testkit.ReadFile(t, c.Log.Path))
			if got := strings.Contains(said, "opened"); got != has.Ptys {
				t.Errorf("a terminal of its own: %t, with %+v", got, has)
			}
			if strings.Contains(said, "theirs") || has.Ptys && strings.Contains(said, "seen") {
				t.Errorf("it writes to %s, or sees it: %s", theirs, said)
			}
		})
	}
}

// TestTerminalOpened: the host opens the terminal of a caller that can use it among the program's own, where it has a name, and the
// program runs once the caller has set it up. A caller that does not confirm it starts nothing.
func TestTerminalOpened(t *testing.T) {
	t.Parallel()
	h := open(t)
	if !host.MeansOf(h).Ptys {
		t.Skip("needs pseudo-terminals in a mount namespace")
	}
	for name, confirms := range map[string]bool{"confirmed": true, "not confirmed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, path := pair(t)
			theirs := terminal(t, path)
			fds := descriptors(theirs, null(t), theirs)
			shown := make(chan string, 1)
			c := shell(t, `echo "$(tty) $(stty size)" >&2; [ -t 1 ] && exit 1; exit 5`)
			c.Stdio = calls(t, func(conn *net.UnixConn) {
				defer conn.Close()
				defer close(shown)
				_, _, _ = conn.WriteMsgUnix([]byte{1}, unix.UnixRights(fds...), nil)
				ours, err := receive(conn)
				if err != nil {
					t.Error(err)
					return
				}
				defer ours.Close()
				if !confirms {
					return
				}
				if err := unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 7, Col: 9}); err != nil {
					t.Error(err)
				}
				_, _ = conn.Write([]byte{1})
				said := make([]byte, 64)
				n, _ := ours.Read(said)
				shown <- string(said[:n])
				_, _ = conn.Read(said)
			})
			p, err := h.Start(t.Context(), c)
			if !confirms {
				if err == nil {
					t.Errorf("it starts")
				}
				return
			}
			testkit.Must(t, err)
			t.Cleanup(func() { testkit.Must(t, p.Conn().Close()) })
			if said := <-shown; said != "/dev/pts/0 7 9\r\n" {
				t.Errorf("it shows %q", said)
			}
			if exit := wait(t, p); exit.Code != 5 {
				t.Errorf("%v", exit)
			}
		})
	}
}

// receive receives a file.
func receive(conn *net.UnixConn) (*os.File, error) {
	control := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), control)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:n])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("%d messages: %w", len(messages), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fds[0]), "received"), nil
}
