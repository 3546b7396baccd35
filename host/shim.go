package host

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/promptware-os/pwos/host/confine"
)

// The hidden first arguments with which a hosting program starts itself.
const (
	shimArg  = "pwos-host-shim"
	guardArg = "pwos-host-guard"
	probeArg = "pwos-host-probe"
	coverArg = "pwos-host-cover"
)

// childVar is set for processes that the host starts, until they execute another program. It prevents a program that does
// not call Shim from starting itself again and again. ready is what shim and guard write when they run.
const (
	childVar = "PWOS_HOST_CHILD"
	ready    = "."
)

// shimEnv returns the environment of a short-lived process that the host starts: it has one processor and no garbage collection. Both
// would cost more if they were set later.
//
// A thread that Go starts first gets a processor. With one processor, on which its goroutine runs, no thread is being started. Otherwise the
// limit on memory could end the shim.
func shimEnv() []string { return []string{"GOMAXPROCS=1", "GOGC=off", childVar + "=1"} }

// errNoShim says what the program must do.
var errNoShim = fmt.Errorf("%w: this program does not call host.Shim first", ErrUnsupported)

// shimmed is set when this process has called Shim. Without that call, a program that starts itself would do so without
// end.
var shimmed atomic.Bool

// Shim must be the first call of main in every program that hosts, and of TestMain in every test that does. In a process
// that the host has started it does not return: the process becomes the agent's program, or the guard. Otherwise it returns
// immediately.
//
// Go can run no code between fork and exec, so Shim does that work after the fork, in a separate process, before the
// program's first instruction.
func Shim() {
	shimmed.Store(true)
	if len(os.Args) < 2 {
		return
	}
	switch os.Args[1] {
	case shimArg:
		runtime.LockOSThread() // capabilities and limits are removed from a thread, which must be the one that calls execve
		os.Exit(become(os.Args[2:]))
	case guardArg:
		os.Exit(guard(os.Args[2:]))
	case probeArg:
		runtime.LockOSThread() // namespaces belong to a thread; on another thread it would mount over the machine's own tree
		syscall.Exit(probed()) // does not wait: see replace
	case coverArg:
		runtime.LockOSThread()
		syscall.Exit(covering(os.Args[2:]))
	}
}

// order is the instruction to the shim. It is passed as words, so no decoder is needed. So is the environment: what an
// agent sets there (LD_PRELOAD, GODEBUG) must not affect the shim, which is not confined yet.
type order struct {
	parent  int   // the daemon; with another parent, the daemon has died
	mark    mark  // 0: none, if the system has no marks
	status  int   // descriptor for errors; it closes when the program runs
	hand    int   // socket over which it hands descriptors over to the daemon; 0: none
	report  int   // socket over which it tells of the program, which is its child then; 0: it becomes the program
	born    int   // pipe for the number of the process that replaces this one in a user namespace; 0: this process becomes the program
	cpu     int64 // limits as in Limits
	memory  int64 //
	files   int64 //
	uid     int   // user, group and further groups of the program; -1: those of the daemon
	gid     int
	umask   int // -1: that of the daemon
	groups  []int
	program string // absolute path
	plan    *confine.Plan
	env     []string
	argv    []string
}

// words encodes the order.
func (o order) words() []string {
	var plan, groups []string
	if o.plan != nil {
		plan = o.plan.Words()
	}
	for _, group := range o.groups {
		groups = append(groups, strconv.Itoa(group))
	}
	var list []string
	for _, n := range []int64{
		int64(o.parent), int64(o.mark), int64(o.status), int64(o.hand), int64(o.report), int64(o.born), o.cpu, o.memory, o.files, int64(o.uid), int64(o.gid), int64(o.umask),
		int64(len(groups)), int64(len(plan)), int64(len(o.env)),
	} {
		list = append(list, strconv.FormatInt(n, 10))
	}
	return slices.Concat(list, []string{o.program}, groups, plan, o.env, o.argv)
}

// readOrder decodes the words of words.
func readOrder(words []string) (o order, err error) {
	const numbers = 15
	if len(words) < numbers+1 {
		return o, fmt.Errorf("%d words are too few", len(words))
	}
	var n [numbers]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return o, err
		}
	}
	rest := words[numbers+1:]
	take := func(count int64) (list []string) {
		if count < 0 || count > int64(len(rest)) {
			err = fmt.Errorf("%d words are too few", len(words))
			return nil
		}
		list, rest = rest[:count], rest[count:]
		return list
	}
	groups, plan, env := take(n[12]), take(n[13]), take(n[14])
	if err != nil {
		return o, err
	}
	o = order{
		parent: int(n[0]), mark: mark(n[1]), status: int(n[2]), hand: int(n[3]), report: int(n[4]), born: int(n[5]),
		cpu: n[6], memory: n[7], files: n[8], uid: int(n[9]), gid: int(n[10]), umask: int(n[11]),
		program: words[numbers], env: env, argv: rest,
	}
	for _, text := range groups {
		group, err := strconv.Atoi(text)
		if err != nil {
			return o, err
		}
		o.groups = append(o.groups, group)
	}
	if len(plan) > 0 {
		o.plan, err = confine.ReadPlan(plan)
	}
	return o, err
}

// become turns this process into the program, or into its init. It returns only if that fails, with the exit code.
func become(words []string) int {
	const failed = 126
	o, err := readOrder(words)
	if err != nil {
		fmt.Fprintln(os.Stderr, "only pwos itself starts this process:", err)
		return 2
	}
	// Signals that the daemon's parent had ignored would stay ignored; execve resets signals with a handler. This process, which becomes
	// the program's init, does not end by them.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGCHLD,
		syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	status := os.NewFile(uintptr(o.status), "status")
	stage, err := o.carry(status)
	var errno syscall.Errno
	errors.As(err, &errno)
	if _, err := fmt.Fprintf(status, "%s %d %v", stage, int(errno), err); err != nil { // the daemon has ended
		return failed + 1
	}
	return failed
}

// carry applies everything and executes the program. It returns the stage that failed.
func (o order) carry(status *os.File) (string, error) {
	if err := o.bind(); err != nil {
		return "fork", err
	}
	if o.born > 0 {
		return "sandbox", o.replace() // which returns only an error
	}
	own := o.plan != nil && o.plan.Terminal
	if !own {
		if err := takeTerminal(); err != nil {
			return "terminal", err
		}
	}
	if err := o.enter(); err != nil {
		return "sandbox", err
	}
	if own {
		if err := errors.Join(o.plan.OpenTerminal(), takeTerminal()); err != nil {
			return "terminal", err
		}
	}
	if err := o.wear(); err != nil {
		return "mark", err
	}
	if err := o.restrict(); err != nil {
		return "sandbox", err
	}
	if _, err := status.WriteString(ready); err != nil {
		return "fork", err
	}
	if o.umask >= 0 {
		syscall.Umask(o.umask)
	}
	// The limits come last, since they apply to the rest of this process too.
	if err := o.limit(); err != nil {
		return "limits", err
	}
	return o.execute()
}

// readStatus converts the shim's text to an error. If the text is only that the shim is ready, the program runs.
func readStatus(text []byte) (stage string, err error) {
	rest, wasReady := strings.CutPrefix(string(text), ready)
	switch {
	case wasReady && rest == "":
		return "", nil
	case rest == "":
		return "fork", errors.New("ended before the program ran (or this program does not call host.Shim first)")
	}
	parts := strings.SplitN(rest, " ", 3)
	if len(parts) < 3 {
		return "fork", fmt.Errorf("shim said %q", text)
	}
	number, err := strconv.Atoi(parts[1])
	switch {
	case err != nil:
		return "fork", fmt.Errorf("shim said %q", text)
	case number == 0:
		return parts[0], fmt.Errorf("%w: %s", ErrUnsupported, parts[2])
	case parts[0] == "exec":
		return parts[0], syscall.Errno(number)
	}
	return parts[0], fmt.Errorf("%s: %w", parts[2], syscall.Errno(number))
}
