package host_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

var update = flag.Bool("update", false, "write the table of probes into the documentation")

// aProbe is an operation that an agent tries. place is a directory outside its own with files of its user.
type aProbe struct {
	group string // of the documentation, which has a line for each
	what  string // unique
	try   func(place string) error
	root  bool // without a sandbox it works for root only
}

// probes returns the operations that an agent tries. Each works without a sandbox, some for root only.
func probes() []aProbe {
	read := func(name string) func(string) error {
		return func(place string) error { _, err := os.ReadFile(filepath.Join(place, name)); return err }
	}
	readAt := func(path string) func(string) error {
		return func(string) error { _, err := os.ReadFile(path); return err }
	}
	raw := func(number uintptr, args ...uintptr) error {
		var a [6]uintptr
		copy(a[:], args)
		_, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
		if errno != 0 {
			return errno
		}
		return nil
	}
	socket := func(family, kind int) func(string) error {
		return func(string) error {
			fd, err := unix.Socket(family, kind, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			return err
		}
	}
	dial := func(network, name string) func(string) error {
		return func(place string) error {
			text, err := os.ReadFile(filepath.Join(place, name))
			if err != nil {
				return err
			}
			conn, err := net.Dial(network, string(text))
			if err != nil {
				return err
			}
			return conn.Close()
		}
	}
	target := func(place string) (pid int, err error) {
		text, err := os.ReadFile(filepath.Join(place, "pid"))
		if err == nil {
			_, err = fmt.Sscan(string(text), &pid)
		}
		return pid, err
	}
	list := []aProbe{
		{group: "read of the kernel", what: "the journal", try: read("../../state/journal")},
		{group: "read of the kernel", what: "it by a second mount", try: read("../../second/journal")},
		{group: "read of the kernel", what: "host key", try: read("../../state/host_key")},
		{group: "read of the kernel", what: "authorized keys", try: read("keys/authorized_keys")},
		{group: "read of the kernel", what: "configuration", try: read("pwos.toml")},
		{group: "read", what: "an SSH key", try: read("../.ssh/id_ed25519")},
		{group: "read", what: "a hidden file made later", try: read("hidden/later")},
		{group: "change a file outside", what: "write", try: func(place string) error { return os.WriteFile(filepath.Join(place, "file"), []byte("x"), 0o600) }},
		{group: "change a file outside", what: "chmod", try: func(place string) error { return os.Chmod(filepath.Join(place, "file"), 0o600) }},
		{group: "change a file outside", what: "utime", try: func(place string) error { return unix.Utime(filepath.Join(place, "file"), nil) }},
		{group: "change a file outside", what: "setxattr", try: func(place string) error {
			return unix.Setxattr(filepath.Join(place, "file"), "user.x", []byte("x"), 0)
		}},
		{group: "change a file outside", what: "lease", try: func(place string) error {
			fd, err := unix.Open(filepath.Join(place, "file"), unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			_, err = unix.FcntlInt(uintptr(fd), unix.F_SETLEASE, unix.F_RDLCK)
			return errors.Join(err, unix.Close(fd))
		}},
		{group: "make", what: "a set-ID file", try: func(string) error {
			if err := os.WriteFile("setuid", nil, 0o700); err != nil {
				return err
			}
			if err := unix.Chmod("setuid", 0o4700); err == nil {
				return nil
			}
			return unix.Chmod("setuid", 0o2700)
		}},
		{group: "connect to a Unix socket", what: "another program's", try: dial("unix", "unix")},
		{group: "connect to a Unix socket", what: "in its working directory", try: func(string) error { return sendUnix("unix", "before-unix") }},
		{group: "connect to a Unix socket", what: "made there later", try: func(string) error { return sendUnix("unix", "later-unix") }},
		{group: "send to a Unix socket", what: "there", try: func(string) error { return sendUnix("unixgram", "before-unixgram") }},
		{group: "send to a Unix socket", what: "made later", try: func(string) error { return sendUnix("unixgram", "later-unixgram") }},
		{group: "connect to a Unix socket", what: "abstract", try: dial("unix", "abstract")},
		{group: "reach a server of the machine by", what: "TCP", try: dial("tcp", "tcp")},
		{group: "reach a server of the machine by", what: "TCP over IPv6", try: dial("tcp", "tcp6")},
		{group: "reach a server of the machine by", what: "UDP", try: func(place string) error {
			text, err := os.ReadFile(filepath.Join(place, "udp"))
			if err != nil {
				return err
			}
			conn, err := net.Dial("udp", string(text))
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.Write([]byte("x")); err != nil {
				return err
			}
			if err := conn.SetReadDeadline(time.Now().Add(bound)); err != nil {
				return err
			}
			_, err = conn.Read(make([]byte, 1)) // in its own network nothing listens there
			return err
		}},
		{group: "make", what: "more blobs than its share", try: func(place string) error {
			return os.WriteFile(filepath.Join(place, "blobs", "file"), make([]byte, 2*probeShare), 0o600)
		}},
		{group: "make", what: "a vsock", try: socket(unix.AF_VSOCK, unix.SOCK_STREAM)},
		{group: "use", what: "SysV shared memory of another program", try: func(place string) error {
			text, err := os.ReadFile(filepath.Join(place, "shm"))
			if err != nil {
				return err
			}
			var id uintptr
			if _, err := fmt.Sscan(string(text), &id); err != nil {
				return err
			}
			return raw(unix.SYS_SHMAT, id, 0, unix.SHM_RDONLY)
		}},
		{group: "make", what: "a user namespace", try: func(string) error {
			return (&exec.Cmd{Path: "/bin/true", SysProcAttr: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}}).Run()
		}},
		{group: "use", what: "io_uring", try: func(string) error {
			var parameters [120]byte
			return raw(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&parameters)))
		}},
		{group: "use", what: "kernel keyrings", try: func(string) error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_PROCESS_KEYRING, true); return err }},
		{group: "do to another process of its user", what: "signal", try: func(place string) error {
			pid, err := target(place)
			if err != nil {
				return err
			}
			return unix.Kill(pid, 0)
		}},
		{group: "do to another process of its user", what: "ptrace", try: func(place string) error {
			pid, err := target(place)
			if err != nil {
				return err
			}
			runtime.LockOSThread() // only the thread that attaches may detach
			defer runtime.UnlockOSThread()
			if err := unix.PtraceAttach(pid); err != nil {
				return err
			}
			_, err = unix.Wait4(pid, nil, unix.WALL, nil)
			return errors.Join(err, unix.PtraceDetach(pid))
		}},
		{group: "do to another process of its user", what: "read memory", try: func(place string) error {
			pid, err := target(place)
			if err != nil {
				return err
			}
			b := []byte{0}
			local := []unix.Iovec{{Base: &b[0], Len: 1}}
			_, err = unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 1}}, 0)
			return notHere(err)
		}},
		{group: "do to another process of its user", what: "take a descriptor", try: func(place string) error {
			pid, err := target(place)
			if err != nil {
				return err
			}
			process, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			fd, err := unix.PidfdGetfd(process, 0, 0)
			if err == nil {
				err = unix.Close(fd)
			}
			return errors.Join(err, unix.Close(process))
		}},
		{group: "make", what: "a mount in one", try: func(string) error {
			// Without a sandbox agents have no privilege for it either, but may create a user namespace that gives it.
			return (&exec.Cmd{Path: "/proc/self/exe", Args: []string{"helper", "t-mount"}, SysProcAttr: &syscall.SysProcAttr{
				Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
			}}).Run()
		}},
	}
	return append(list, []aProbe{
		{group: "read", what: "root's files", try: readAt("/boot/secret"), root: true},
		{group: "read", what: "files in root's directories", try: readAt("/boot/secrets/file"), root: true},
		{group: "read", what: "/etc/shadow", try: readAt("/etc/shadow"), root: true},
	}...)
}

// mountTmpfs mounts a tmpfs over the working directory, in a separate mount namespace.
func mountTmpfs([]string) int {
	if unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") != nil || unix.Mount("probe", ".", "tmpfs", 0, "") != nil {
		return 1
	}
	return 0
}

// probeShare is the size of the agent's blob directory, in bytes.
const probeShare = 1 << 20

// probe is an agent that tries all probes.
func probe(args []string) int {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil { // the sockets that are made later are there
		return 1
	}
	for _, p := range probes() {
		said(p.what, p.try(args[0]))
	}
	return 0
}

// probed returns the outcome of each probe, with a sandbox and without, for this process's user with its home directory.
func probed(home string) (inside, outside map[string]bool, err error) {
	place, err := os.MkdirTemp(home, "pwos-probes-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(place)
	h, err := host.New(host.Options{})
	if err != nil {
		return nil, nil, err
	}
	defer h.Close(context.Background(), 0)
	for _, name := range []string{"hidden", "inside", "outside", "sockets", "keys", "blobs", "../.ssh"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(place, name), 0o700))
	}
	// Another agent has the same privileges as the one that tries, unlike other processes of user 0.
	other, err := h.Start(context.Background(), host.Command{Argv: []string{"/proc/self/exe", "t-idle"}, Dir: place, PID: 8, Sandbox: host.SandboxOff})
	if err != nil {
		return nil, nil, err
	}
	defer other.Conn().Close()
	files := map[string]string{
		"../../state/journal": "{}", "../../state/host_key": "key", "../.ssh/id_ed25519": "key", "keys/authorized_keys": "key", "pwos.toml": "",
		"hidden/later": "secret", "file": "x", "pid": fmt.Sprint(other.OSPID()),
	}
	for name, address := range map[string][2]string{
		"unix": {"unix", filepath.Join(place, "sockets", "s")}, "abstract": {"unix", "@" + filepath.Base(place)},
		"tcp": {"tcp", "127.0.0.1:0"}, "tcp6": {"tcp", "[::1]:0"},
	} {
		l, lerr := net.Listen(address[0], address[1])
		if lerr != nil {
			return nil, nil, lerr
		}
		defer l.Close()
		files[name] = l.Addr().String()
	}
	udp, err3 := net.ListenPacket("udp", "127.0.0.1:0")
	if err3 != nil {
		return nil, nil, err3
	}
	defer udp.Close()
	files["udp"] = udp.LocalAddr().String()
	go echo(udp)
	id, err2 := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	defer unix.SysvShmCtl(id, unix.IPC_RMID, nil)
	files["shm"] = fmt.Sprint(id)
	for name, text := range files {
		err = errors.Join(err, os.WriteFile(filepath.Join(place, name), []byte(text), 0o600))
	}
	if err := errors.Join(err, err2); err != nil {
		return nil, nil, err
	}
	for _, mode := range []host.Mode{host.SandboxDefault, host.SandboxOff} {
		c := host.Command{
			Argv: []string{"/proc/self/exe", "t-probe", place}, Dir: filepath.Join(place, map[host.Mode]string{host.SandboxDefault: "inside", host.SandboxOff: "outside"}[mode]),
			PID: 7, Sandbox: mode,
		}
		closeBefore, err := serveUnix(c.Dir, "before")
		if err != nil {
			return nil, nil, err
		}
		defer closeBefore()
		if mode == host.SandboxDefault {
			c.Share = &host.Share{Target: filepath.Join(place, "blobs"), Bytes: probeShare, Adopt: (*os.Root).Close}
			c.Private, c.Hide = []string{filepath.Join(home, "..", "state"), filepath.Join(place, "keys", "authorized_keys"), filepath.Join(place, "pwos.toml")}, []string{filepath.Join(place, "hidden", "later")}
		}
		p, err := h.Start(context.Background(), c)
		if err != nil {
			return nil, nil, err
		}
		if mode == host.SandboxDefault { // the hidden file is replaced while the agent runs or starts
			next := filepath.Join(place, "hidden", "next")
			err = errors.Join(os.WriteFile(next, []byte("secret"), 0o600), os.Rename(next, filepath.Join(place, "hidden", "later")))
		}
		closeLater, laterErr := serveUnix(c.Dir, "later")
		if laterErr != nil {
			return nil, nil, laterErr
		}
		defer closeLater()
		_, writeErr := p.Conn().Write([]byte("\n"))
		text, readErr := io.ReadAll(p.Conn())
		<-p.Done()
		if err := errors.Join(err, writeErr, readErr, p.Conn().Close()); err != nil {
			return nil, nil, err
		}
		results := map[string]bool{}
		for _, pr := range probes() {
			if !strings.Contains("\n"+string(text), "\n"+pr.what+": ") {
				return nil, nil, fmt.Errorf("%s: %s was not tried: %s", mode, pr.what, text)
			}
			results[pr.what] = strings.Contains("\n"+string(text), "\n"+pr.what+": ok\n")
		}
		if mode == host.SandboxDefault {
			inside = results
		} else {
			outside = results
		}
	}
	return inside, outside, nil
}

// echo answers each datagram until its socket is closed.
func echo(conn net.PacketConn) {
	b := make([]byte, 1)
	for {
		n, from, err := conn.ReadFrom(b)
		if err != nil {
			return
		}
		_, _ = conn.WriteTo(b[:n], from) // the sender reports a missing answer
	}
}

// probesWith mounts the state directory a second time, and files of root, in the separate mount namespace in which it was started, and starts
// probesAs there as a user.
func probesWith(args []string) int {
	above := args[0]
	user, err := strconv.ParseUint(args[1], 10, 32)
	for _, name := range []string{"home", "state", "second"} {
		dir := filepath.Join(above, name)
		err = errors.Join(err, os.Mkdir(dir, 0o700), os.Chown(dir, int(user), int(user)))
	}
	err = errors.Join(err, unix.Mount(filepath.Join(above, "state"), filepath.Join(above, "second"), "", unix.MS_BIND, ""))
	err = errors.Join(
		err, unix.Mount("probe", "/boot", "tmpfs", 0, "mode=0755"), os.WriteFile("/boot/secret", nil, 0o600),
		os.Mkdir("/boot/secrets", 0o700), os.WriteFile("/boot/secrets/file", nil, 0o644),
	)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	cmd := exec.Command("/proc/self/exe", "t-probes", filepath.Join(above, "home"))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", os.Stdout, os.Stderr
	cmd.Env = []string{"HOME=" + filepath.Join(above, "home"), "PATH=/usr/bin:/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	if err := cmd.Run(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// probesAs runs probed in a process of another user.
func probesAs(args []string) int {
	inside, outside, err := probed(args[0])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	for _, p := range probes() {
		fmt.Println(inside[p.what], outside[p.what], p.what)
	}
	return 0
}

// TestProbes: what an agent cannot do on this machine, as documented, without privileges and as root. Each probe works
// without a sandbox, so that it can fail.
func TestProbes(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to try both users")
	}
	h := open(t)
	strict(t, h)
	results := map[string][2]bool{}
	for i, user := range []uint32{65534, 0} {
		above := shared(t)
		testkit.Must(t, os.Chown(above, int(user), int(user)))
		cmd := exec.Command("/proc/self/exe", "t-probes-with", above, fmt.Sprint(user))
		cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/bin:/bin"}
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("user %d: %v\n%s", user, err, text)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var in, out bool
			if _, err := fmt.Sscan(line, &in, &out); err != nil {
				t.Fatalf("user %d said %q", user, text)
			}
			what := strings.SplitN(line, " ", 3)[2]
			r := results[what]
			r[i] = in
			results[what] = r
			if !out && !(user != 0 && slices.ContainsFunc(probes(), func(p aProbe) bool { return p.root && p.what == what })) {
				t.Errorf("user %d: %s fails without a sandbox too: the probe shows nothing", user, what)
			}
		}
	}
	lines, groups := map[string]string{}, []string{}
	word := map[bool]string{true: "works", false: "refused"}
	for _, p := range probes() {
		if lines[p.group] == "" {
			groups = append(groups, p.group)
			lines[p.group] = "- " + p.group + ": " + p.what
		} else {
			lines[p.group] += ", " + p.what
		}
		if r := results[p.what]; r[0] || r[1] {
			lines[p.group] += fmt.Sprintf(" (%s unprivileged, %s as root)", word[r[0]], word[r[1]])
		}
	}
	list := ""
	for _, group := range groups {
		list += lines[group] + "\n"
	}
	const path, begin, end = "../docs/agents.md", "<!-- probes: go test ./host -run TestProbes -update -->\n", "<!-- end of probes -->\n"
	doc, err := os.ReadFile(path)
	testkit.Must(t, err)
	head, rest, found := strings.Cut(string(doc), begin)
	old, tail, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("the documentation has no place for the list")
	}
	if *update {
		testkit.Must(t, os.WriteFile(path, []byte(head+begin+list+end+tail), 0o644))
	} else if old != list {
		t.Errorf("the documentation says\n%s\nwant\n%s(go test ./host -run TestProbes -update)", old, list)
	}
}
