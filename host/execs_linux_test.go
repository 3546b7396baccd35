package host_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
)

// seen has the execs that a host was told of.
type seen struct {
	mu   sync.Mutex
	list []host.Exec
}

// watch has a command's execs kept, and refused with the number that refuse returns; nil: none is.
func watch(c *host.Command, refuse func(*host.Exec) syscall.Errno) *seen {
	s := &seen{}
	c.Exec = func(_ context.Context, e *host.Exec) syscall.Errno {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.list = append(s.list, *e)
		if refuse == nil {
			return 0
		}
		return refuse(e)
	}
	return s
}

// after returns the execs after that of the program itself.
func (s *seen) after(t testing.TB) []host.Exec {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.list) == 0 || !s.list[0].First {
		t.Fatalf("the first exec is not the program's: %+v", s.list)
	}
	return s.list[1:]
}

// notified skips the test if the machine lacks the means to be told of execs.
func notified(t testing.TB, h *host.Host) {
	t.Helper()
	if has := host.MeansOf(h); !has.Filter || !has.Notify {
		t.Skip("this system cannot tell of execs")
	}
}

// TestExecs: the host is told of each program that an agent executes, in every way: of path, arguments and directory as they are
// requested, and of the process. What is not there is marked.
func TestExecs(t *testing.T) {
	t.Parallel()
	h := open(t)
	notified(t, h)
	c := shell(t, `
		cp /bin/true ./own
		/bin/true one "two words" "" 'three
lines'
		mkdir sub && cd sub && ../own relative; cd ..
		printf '#!/bin/sh\nexit 0\n' >script; chmod +x script; ./script x
		/no/such 2>/dev/null
		env -S "/bin/true split up"
		echo a b | xargs /bin/true
		for way in spawned at-directory in-memory by-number many long longest none empty-path search; do "$1" t-execs $way; done`)
	self, err := os.Executable()
	testkit.Must(t, err)
	c.Argv = append(c.Argv, self)
	watched := watch(&c, nil)
	p := start(t, h, c)
	if got, want := all(t, p), "empty-path: no such file or directory\n"; got != want {
		t.Errorf("the program said %q, want %q", got, want)
	}
	wait(t, p)
	name := strings.NewReplacer(c.Dir, "DIR", self, "SELF")
	var got []string
	for _, e := range watched.after(t) {
		args := strings.Join(e.Args, "|")
		if len(args) > 100 {
			args = fmt.Sprintf("%d arguments, %d bytes", len(e.Args), len(args))
		}
		if e.PID == 0 || e.Parent == 0 || e.Time.IsZero() || e.Hidden || e.First {
			t.Errorf("exec of %s: process %d, its parent %d, hidden %v, first %v", e.Path, e.PID, e.Parent, e.Hidden, e.First)
		}
		if len(e.Args) == 3 && e.Args[1] == "t-execs" {
			continue
		}
		line := fmt.Sprintf("%s in %s by %s: %s", e.Path, e.Dir, filepath.Base(e.Program), args)
		for mark, on := range map[string]bool{" (missing)": e.Missing, " (cut)": e.Cut} {
			if on {
				line += mark
			}
		}
		got = append(got, name.Replace(line))
	}
	file := func(name string) string {
		at, err := exec.LookPath(name)
		testkit.Must(t, err)
		return at
	}
	bin, err := filepath.EvalSymlinks("/bin")
	testkit.Must(t, err)
	shell, err := filepath.EvalSymlinks("/bin/sh")
	testkit.Must(t, err)
	sh, helper := filepath.Base(shell), filepath.Base(self)
	want := []string{
		file("cp") + " in DIR by " + sh + ": cp|/bin/true|./own",
		"/bin/true in DIR by " + sh + ": /bin/true|one|two words||three\nlines",
		file("mkdir") + " in DIR by " + sh + ": mkdir|sub",
		"DIR/own in DIR/sub by " + sh + ": ../own|relative",
		file("chmod") + " in DIR by " + sh + ": chmod|+x|script",
		"DIR/script in DIR by " + sh + ": ./script|x",
		"/no/such in DIR by " + sh + ": /no/such (missing)",
		file("env") + " in DIR by " + sh + ": env|-S|/bin/true split up",
		"/bin/true in DIR by env: /bin/true|split|up",
		file("xargs") + " in DIR by " + sh + ": xargs|/bin/true",
		"/bin/true in DIR by xargs: /bin/true|a|b",
		"/bin/true in / by " + helper + ": spawned",
		bin + "/true in DIR by " + helper + ": at-directory",
		"/memfd:tool (deleted) in DIR by " + helper + ": in-memory",
		"/memfd:tool (deleted) in DIR by " + helper + ": by-number",
		"/bin/true in DIR by " + helper + ": 2000 arguments, 3999 bytes",
		"/bin/true in DIR by " + helper + ": 2 arguments, 120005 bytes",
		"/bin/true in DIR by " + helper + ": 3 arguments, 131047 bytes (cut)",
		"/bin/true in DIR by " + helper + ": ",
		" in DIR by " + helper + ": empty-path (missing)",
		"/no/such/true in DIR by " + helper + ": true|a (missing)",
		"/nowhere/true in DIR by " + helper + ": true|a (missing)",
		"/no/such/true in / by " + helper + ": true|b (missing)",
		"/bin/true in /dev by " + helper + ": true|b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// execs executes a program in a way that a shell does not.
func execs(args []string) int {
	var list []string
	at, path, flags := unix.AT_FDCWD, "/bin/true", 0
	var err error
	switch list = args; args[0] {
	case "spawned": // by vfork
		if err = (&exec.Cmd{Path: path, Args: list, Dir: "/"}).Run(); err == nil {
			return 0
		}
	case "at-directory":
		path = "true"
		at, err = unix.Open("/bin", unix.O_PATH, 0)
	case "in-memory", "by-number":
		var text []byte
		if at, err = unix.MemfdCreate("tool", 0); err == nil {
			text, err = os.ReadFile(path)
		}
		if err == nil {
			_, err = unix.Write(at, text)
		}
		if path, flags = "", unix.AT_EMPTY_PATH; args[0] == "by-number" {
			path, flags = fmt.Sprintf("/proc/self/fd/%d", at), 0
		}
	case "many":
		list = slices.Repeat([]string{"x"}, 2000)
	case "long":
		list = append(list, strings.Repeat("x", 120_000))
	case "longest":
		list = append(list, strings.Repeat("x", 70_000), strings.Repeat("y", 70_000))
	case "none":
		list = nil
	case "empty-path":
		path = ""
	case "search":
		searches()
		return 0
	}
	argv, argErr := syscall.SlicePtrFromStrings(list)
	name, nameErr := unix.BytePtrFromString(path)
	if err = errors.Join(err, argErr, nameErr); err == nil {
		_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(at), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&argv[0])), 0, uintptr(flags), 0)
		err = errno
	}
	said(args[0], err)
	return 0
}

// searches executes a program as a search in PATH does; an argument changes in its place, and so does the directory.
func searches() {
	arg := []byte("a\x00")
	argv := []*byte{unsafe.SliceData([]byte("true\x00")), &arg[0], nil}
	for _, try := range []struct {
		path, dir string
		arg       byte
	}{{"/no/such/true\x00", ".", 'a'}, {"/nowhere/true\x00", ".", 'a'}, {"/no/such/true\x00", "/", 'b'}, {"/bin/true\x00", "/dev", 'b'}} {
		arg[0] = try.arg
		if err := unix.Chdir(try.dir); err != nil {
			said("search", err)
			return
		}
		unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(unsafe.StringData(try.path))), uintptr(unsafe.Pointer(&argv[0])), 0)
	}
	said("search", errors.New("nothing was executed"))
}

// TestExecsRecall: of what strace sees in the same run, the host is told of everything, and of nothing else: name and arguments of many
// execs, some at the same time, and of searches in PATH.
func TestExecsRecall(t *testing.T) {
	t.Parallel()
	tracer, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	h := open(t)
	notified(t, h)
	c := shell(t, `
		n=0; while [ $n -lt 100 ]; do /bin/true $n; n=$((n+1)); done
		for i in 1 2 3 4 5 6 7 8; do (for k in 1 2 3 4 5; do /bin/true $i $k; sh -c "/bin/true nested $k; exec /bin/true replaced"; done) & done
		wait
		seq 100 | xargs -n 3 -P 4 /bin/true
		find . -exec /bin/true {} +
		PATH=/nowhere:/usr/nowhere:$PATH env true 'quoted "text"' ""
		env no-such-program; nice -n 1 true`)
	list := filepath.Join(c.Dir, "trace")
	c.Argv = append([]string{tracer, "-f", "-qq", "-xx", "-s", "100000", "-e", "trace=execve,execveat", "-e", "signal=none", "-o", list}, c.Argv...)
	watched := watch(&c, nil)
	p := start(t, h, c)
	wait(t, p)
	text, err := os.ReadFile(list)
	testkit.Must(t, err)
	var want, got []string
	for _, line := range regexp.MustCompile(`execve\("([^"]*)", \[([^\]]*)\]`).FindAllStringSubmatch(string(text), -1) {
		var args []string
		for _, arg := range regexp.MustCompile(`"[^"]*"`).FindAllString(line[2], -1) {
			args = append(args, testkit.Value(strconv.Unquote(arg))(t))
		}
		want = append(want, testkit.Value(strconv.Unquote(`"`+line[1]+`"`))(t)+": "+strings.Join(args, "|"))
	}
	for _, e := range watched.after(t) {
		got = append(got, e.Path+": "+strings.Join(e.Args, "|"))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 300 {
		t.Errorf("strace sees %d execs, the host %d (-strace +host):\n%s", len(want), len(got), diff)
	}
}

// TestExecRefused: a program that the host refuses is not executed; its caller gets the number that the host returns.
func TestExecRefused(t *testing.T) {
	t.Parallel()
	h := open(t)
	notified(t, h)
	c := shell(t, `
		cp /bin/true true; cp /bin/true other
		./true && ./other && echo both; echo $?
		exec ./other; echo not replaced`)
	watched := watch(&c, func(e *host.Exec) syscall.Errno {
		if filepath.Base(e.Path) == "other" {
			return syscall.EACCES
		}
		return 0
	})
	c.Argv[2] = "exec 2>&1\n" + c.Argv[2]
	p := start(t, h, c)
	got := all(t, p)
	if exit := wait(t, p); exit.Code != 126 || !strings.Contains(got, "126\n") || !strings.Contains(got, "ermission denied") || strings.Contains(got, "both") || strings.Contains(got, "not replaced") {
		t.Errorf("the program said %q, and ended as %v", got, exit)
	}
	if list := watched.after(t); len(list) != 5 {
		t.Errorf("got %+v", list)
	}
}

// TestNotTold: without a sandbox, and on a machine that lacks the means, which then is a gap, nobody is told of execs.
func TestNotTold(t *testing.T) {
	t.Parallel()
	lacks, err := host.Probe()
	testkit.Must(t, err)
	lacks.Notify = false
	bare, err := host.New(host.Options{Means: &lacks})
	testkit.Must(t, err)
	t.Cleanup(func() { bare.Close(context.Background(), 0) })
	if gaps := strings.Join(bare.Gaps(), "\n"); !strings.Contains(gaps, "the programs that agents start are not recorded") {
		t.Errorf("the gaps are %s", gaps)
	}
	for _, try := range []struct {
		host *host.Host
		mode host.Mode
	}{{bare, host.SandboxDefault}, {open(t), host.SandboxOff}} {
		c := shell(t, "/bin/true && echo ran")
		c.Sandbox, c.AllowGaps = try.mode, true
		watched := watch(&c, func(*host.Exec) syscall.Errno { return syscall.EACCES })
		if got := output(t, try.host, c); got != "ran\n" || len(watched.list) != 0 {
			t.Errorf("with sandbox %s the program said %q, the host was told of %+v", try.mode, got, watched.list)
		}
	}
}

// BenchmarkExecs measures a shell that executes a program 1000 times, with the host told of each, and without.
func BenchmarkExecs(b *testing.B) {
	h := open(b)
	for _, told := range []bool{false, true} {
		b.Run("told="+strconv.FormatBool(told), func(b *testing.B) {
			notified(b, h)
			for b.Loop() {
				c := shell(b, "i=0; while [ $i -lt 1000 ]; do /bin/true; i=$((i+1)); done")
				if told {
					c.Exec = func(context.Context, *host.Exec) syscall.Errno { return 0 }
				}
				p := start(b, h, c)
				b.ReportMetric(float64(wait(b, p).CPU.Milliseconds()), "cpu-ms/op")
			}
		})
	}
}
