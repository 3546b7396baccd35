package testkit

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Main runs the tests of a package, removes the programs that they have built, and returns the exit code, which is 1 if
// goroutines are left. They get some time to end, since the actor library counts messages to an actor that has ended for a
// second.
//
// In a plain run temporary files are in memory, and GOGC is 400; see saveWork.
//
// Parallel tests wait for processes, disks and each other's locks more than they compute, so more of them run at a time than there are
// processors, unless -parallel says how many, or the race detector has them compute. A property is checked as often as Rounds says, unless
// -rapid.checks does. Programs that tests start do not inherit that SIGHUP is ignored.
func Main(m *testing.M) int {
	flag.Parse()
	DefaultHangUp()
	if f := flag.Lookup("test.parallel"); !RaceDetector() && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(4 * runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	if f := flag.Lookup("rapid.checks"); f != nil && f.Value.String() == f.DefValue {
		if err := f.Value.Set(strconv.Itoa(Rounds(20, 50, 100))); err != nil {
			panic(err)
		}
	}
	cleanUp, err := saveWork()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot prepare the tests:", err)
		return 1
	}
	code := m.Run()
	err = goleak.Find(unclosed...)
	for limit := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(limit); {
		err = goleak.Find(unclosed...)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "goroutines are left:", err)
		code = max(code, 1)
	}
	if err := removePrograms(); err != nil {
		fmt.Fprintln(os.Stderr, "programs are left:", err)
		code = max(code, 1)
	}
	if err := cleanUp(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// unclosed are the goroutines of a stream that is made while its NATS server, in the test's process, shuts down: the server does not
// close its store. Of a server that was not shut down there are many others.
var unclosed = []goleak.Option{
	goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop"),
	goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
}

// Dir returns an empty directory that is removed after the test. Its path is short, unlike t.TempDir's, so that the path of
// a socket in it is not too long.
func Dir(t testing.TB) string {
	t.Helper()
	dir := Value(os.MkdirTemp("", "pw"))(t)
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("a directory is left: %v", err)
		}
	})
	return dir
}

// Alive reports whether a process of the system exists and is not a zombie.
func Alive(osPID int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", osPID))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z")
}
