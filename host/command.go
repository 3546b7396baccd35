package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/host/confine"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/schema"
)

// Channel names the descriptors by which a program communicates with the kernel.
type Channel string

// The channels.
const (
	// ChannelStdio is standard input and output, as two pipes: a program may open /dev/stdout again, which fails for a
	// socket. Standard error goes to the log.
	ChannelStdio Channel = "stdio"
	// ChannelFD3 is descriptor 3, one end of a socket pair. Standard input, output and error are those of Command.Stdio;
	// without it, the input is empty, and output and error go to the log.
	ChannelFD3 Channel = "fd3"
)

// Mode is how strictly a program is confined.
type Mode string

// The modes of the sandbox.
const (
	// SandboxDefault confines as far as the system can. Process.Sandbox names what is enforced.
	SandboxDefault Mode = confine.Default
	// SandboxStrict hides everything except the system's files and what is named, and refuses to start if the system
	// lacks one of the means.
	SandboxStrict Mode = confine.Strict
	// SandboxOff does not confine. Privileges are dropped nevertheless.
	SandboxOff Mode = confine.Off
)

// Net is the network of a program.
type Net string

// The networks.
const (
	NetNone   Net = confine.NetNone   // none
	NetKernel Net = confine.NetKernel // through Command.Network only
	NetOpen   Net = confine.NetOpen   // as the kernel's user
)

// Network is the default network of a mode.
func (m Mode) Network() Net {
	switch m {
	case SandboxStrict:
		return NetNone
	case SandboxOff:
		return NetOpen
	}
	return NetKernel
}

// Limits bound what a program uses. Zero means no limit. Limits on CPU time, memory and open files apply to each process,
// not to their sum: see the package comment.
type Limits struct {
	CPUSeconds  int64 // processor time of one process, in seconds
	MemoryBytes int64 // private writable memory of one process, in bytes
	OpenFiles   int64 // open descriptors of one process; at least 8
	WallSeconds int64 // time from the start, in seconds
	// Processes is how many processes the agent may have at the same time. It is checked five times a second; the whole
	// agent is killed if it has more. It is not enforced outside of Linux.
	Processes int64
	// DiskBytes is how much of the disk the agent may have by Command.Used. It is looked at every ten seconds, more often at the start, and
	// every minute where a look takes long; the whole agent is killed if it has more.
	DiskBytes int64
}

// LogOptions configure the log of a program's standard error. The zero value discards it.
type LogOptions struct {
	// Path is the log file, created with mode 0600. Older ones are Path.1 and so on. It must not be below the working
	// directory, where the program could rewrite it.
	Path string
	// MaxBytes bounds each file; 0 means 1 MiB.
	MaxBytes int64
	// Files is the number of files, including the current one; 0 means 2.
	Files int
	// Shown adds what a client shows of the program at its terminal: see Command.Stdio.
	Shown bool
}

// Share is a writable directory of a program, at Target, with a file system of Bytes of its own. Where the system has no
// mount namespaces, the program may read Source instead.
type Share struct {
	Target, Source string
	Bytes          int64
	// Adopt is called with the directory before the program runs, and takes ownership of it. It is not called for Source.
	Adopt func(*os.Root) error
}

// Command is a program to start.
type Command struct {
	// Argv is the program and its arguments. A name without a slash is searched in PATH, one with a slash is relative to
	// Dir.
	Argv []string
	// Env is added to the clean environment and overrides it, except for PWOS_PID, PWOS_AGENT_ID and PWOS_FD.
	Env map[string]string
	// Dir is the working directory, absolute. It must exist and be exclusive to the program, which may write there. A
	// sandbox follows no symbolic link in it; with ReadOnly it forbids writing.
	Dir      string
	ReadOnly bool
	// Tmp is the program's directory for temporary files, absolute, which the host makes and removes with all that is in it; its
	// parent must exist. With a mount namespace it is the program's /tmp. "" means .tmp in Dir, which is removed if it is empty.
	Tmp string
	// Used returns how much of the disk the agent has, in bytes, and stops when done is closed; nil: that is not bounded.
	Used func(done <-chan struct{}) int64

	Channel Channel // "" means stdio, or fd3 with Stdio
	// Stdio is the path of a Unix socket, at which a client of the same user or of user 0 listens that hands over its own
	// standard input, output and error; "" means none. A pseudo-terminal among them becomes the controlling terminal: it must
	// not be one yet. What goes to them is in no log, unless the client returns it: see LogOptions.Shown. The end of the client ends the program. Linux only.
	Stdio string
	// Grace is the time between SIGTERM and SIGKILL when that client has gone.
	Grace time.Duration
	// Stderr is the path of a FIFO that gets what the program writes to standard error, besides the log; "" means none. The program
	// waits for its reader.
	Stderr string
	// Sign is the path of an ssh-agent's socket, by which the program signs for git: see signer; "" means none.
	Sign string
	// User is the user that the program runs as; nil: that of this process. It needs user 0.
	User *osuser.User
	// Umask is the program's umask; nil means the daemon's.
	Umask   *int64
	Limits  Limits
	Sandbox Mode // "" means default
	Net     Net  // "" means that of the mode

	// Read and Write are what a sandbox lets the program read and write in addition to its working directory, and Hide is
	// what it hides. Hide takes precedence. Hold are directories whose projects have files that are shown without their content, such as
	// .env, except for those that Read and Write name.
	Read, Write, Hide, Hold []string
	// Away is called when another program has taken away something that is hidden, or that the program may only read, with the name that
	// it had; "": it may have been any. What is there next is covered again, but it may be the program's own. It may be nil.
	Away func(name string)
	// Private are the kernel's own files and directories, which are also hidden. Places are the exceptions that the program
	// gets.
	Private []string
	Places  []Place
	// Review is a copy of a directory, which the program has in its place: see confine.Request. nil: none.
	Review *Place
	// Copies are private copies of files and directories, by path: see confine.Request.
	Copies map[string]string
	// Sockets is the place with the kernel's sockets, to which the program may connect.
	Sockets Place
	// Share is a directory that the program and the daemon share; nil: none.
	Share *Share
	// ShowProgram makes a sandbox show the program's own file wherever it is, unless it is hidden.
	ShowProgram bool
	// AllowGaps starts the program even if the system cannot hide Private.
	AllowGaps bool
	// Network serves the program's network (NetKernel). It is called before the program runs, and takes ownership of the
	// sockets. If it is nil or fails, they are closed.
	Network func(*Process, *Sockets) error
	// Ports accept connections to names, in addition to 80 and 443.
	Ports []uint16
	// Locals are ports of the program's localhost that the host serves. Publishes gives it a dialer of the program's own ports.
	Locals    []uint16
	Publishes bool
	// Exec is called, from one goroutine, with what a process of the agent is about to execute, the program itself included. The process
	// waits meanwhile; it fails with the number that Exec returns, if that is not 0. ctx ends with the agent. nil, without a sandbox, and
	// where the machine lacks the means: nobody is told.
	Exec func(ctx context.Context, e *Exec) syscall.Errno
	// Upstreams are names of services. For each the program gets an address, in the variable that UpstreamEnv names.
	Upstreams []string

	PID     int64
	AgentID string
	Log     LogOptions
}

// Bounds of settings. More seconds than a century would overflow a timer.
const (
	maxSeconds  = 100 * 365 * 24 * 60 * 60
	leastFiles  = 8
	logBytes    = 1 << 20
	logFiles    = 2
	maxLogFiles = 100
)

// normal returns the command with its defaults, or an error that wraps ErrCommand.
func (c Command) normal() (Command, error) {
	switch {
	case c.Channel != "":
	case c.Stdio != "":
		c.Channel = ChannelFD3
	default:
		c.Channel = ChannelStdio
	}
	if c.Sandbox == "" {
		c.Sandbox = SandboxDefault
	}
	if c.Net == "" {
		c.Net = c.Sandbox.Network()
	}
	if c.Log.MaxBytes == 0 {
		c.Log.MaxBytes = logBytes
	}
	if c.Log.Files == 0 {
		c.Log.Files = logFiles
	}
	if why := c.wrong(); why != "" {
		return c, fmt.Errorf("%w: %s", ErrCommand, why)
	}
	c.Dir = filepath.Clean(c.Dir)
	if c.Log.Path == "" {
		return c, nil
	}
	inside, err := below(c.Log.Path, c.Dir)
	if err != nil {
		return c, err
	}
	if inside {
		return c, fmt.Errorf("%w: the log %s is in the working directory, where the program could rewrite it", ErrCommand, c.Log.Path)
	}
	return c, nil
}

// wrong returns what is invalid, or "".
func (c Command) wrong() string {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return "no program is named"
	case strings.ContainsRune(strings.Join(c.Argv, ""), 0):
		return "an argument contains NUL"
	case !filepath.IsAbs(c.Dir) || strings.ContainsRune(c.Dir, 0):
		return fmt.Sprintf("working directory %q is not an absolute path", c.Dir)
	case strings.ContainsRune(c.AgentID, 0):
		return "agent id contains NUL"
	case c.Channel != ChannelStdio && c.Channel != ChannelFD3:
		return fmt.Sprintf("channel %q is not one of stdio, fd3", c.Channel)
	case c.Stdio != "" && c.Channel != ChannelFD3:
		return "with its caller's standard input and output the channel is fd3"
	case c.Stdio != "" && c.Stderr != "":
		return "standard error is its caller's already"
	case c.Sandbox != SandboxDefault && c.Sandbox != SandboxStrict && c.Sandbox != SandboxOff:
		return fmt.Sprintf("sandbox %q is not one of default, strict, off", c.Sandbox)
	case c.Net != NetNone && c.Net != NetKernel && c.Net != NetOpen:
		return fmt.Sprintf("net %q is not one of none, kernel, open", c.Net)
	case c.Sandbox == SandboxOff && c.Net != NetOpen:
		return "sandbox off does not confine the network: net must be open"
	case c.Umask != nil && (*c.Umask < 0 || *c.Umask > 0o777):
		return fmt.Sprintf("umask %o is out of range", *c.Umask)
	case c.Log.MaxBytes < 0 || c.Log.Files < 0 || c.Log.Files > maxLogFiles:
		return "bounds of the log are out of range"
	}
	for _, path := range slices.Concat(c.Read, c.Write, c.Hide, c.Hold, c.Private) {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
			return fmt.Sprintf("%q is not an absolute path", path)
		}
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Sprintf("environment variable %q cannot be set", name)
		}
	}
	return c.Limits.wrong()
}

// wrong returns which limit is out of range, or "".
func (l Limits) wrong() string {
	for _, v := range []struct {
		name        string
		value, most int64
	}{
		{"cpu_seconds", l.CPUSeconds, maxSeconds},
		{"memory_bytes", l.MemoryBytes, math.MaxInt64},
		{"open_files", l.OpenFiles, math.MaxInt32},
		{"wall_seconds", l.WallSeconds, maxSeconds},
		{"processes", l.Processes, math.MaxInt32},
	} {
		if v.value < 0 || v.value > v.most {
			return fmt.Sprintf("limit %s is out of range: %d", v.name, v.value)
		}
	}
	if l.OpenFiles != 0 && l.OpenFiles < leastFiles {
		return fmt.Sprintf("limit open_files must be at least %d, otherwise no program starts", leastFiles)
	}
	return ""
}

// wall returns the limit as a duration; 0 means none.
func (l Limits) wall() time.Duration { return time.Duration(l.WallSeconds) * time.Second }

// below reports whether a path is in dir after symbolic links are resolved. The path's parent must exist.
func below(path, dir string) (bool, error) {
	folder, err := filepath.EvalSymlinks(filepath.Dir(path))
	if err != nil {
		return false, fmt.Errorf("find the log's folder: %w", err)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, fmt.Errorf("find working directory: %w", errors.Join(ErrNotFound, err))
	}
	rel, err := filepath.Rel(root, folder)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../"), nil
}

// environ returns the program's environment. Of the daemon's it has only PATH and LANG, so that no secret of the operator's
// shell is passed on. HOME is the working directory, the only place where a confined program may write. plan is nil if the
// program is not confined.
func (c Command) environ(plan *confine.Plan) []string {
	tmp := c.tmp()
	if plan != nil && plan.Tmp != "" {
		tmp = plan.Tmp
	}
	env := map[string]string{
		"PATH": or(os.Getenv("PATH"), "/usr/local/bin:/usr/bin:/bin"), "LANG": or(os.Getenv("LANG"), "C.UTF-8"),
		"HOME": c.home(), "TMPDIR": tmp,
	}
	if name := nameOf(c.User); name != "" {
		env["USER"], env["LOGNAME"] = name, name
	}
	if plan != nil && plan.Listens() {
		for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
			env[name], env[strings.ToLower(name)] = ProxyURL, ProxyURL
		}
		env["NO_PROXY"], env["no_proxy"] = "localhost,127.0.0.1,::1", "localhost,127.0.0.1,::1"
		env["NODE_USE_ENV_PROXY"] = "1"
		for i, name := range c.Upstreams {
			env[UpstreamEnv(name)] = UpstreamURL(i)
		}
	}
	for name, value := range c.Env {
		env[name] = value
	}
	if c.Sign != "" {
		env["SSH_AUTH_SOCK"] = filepath.Join(tmp, signerName)
	}
	env["PWOS_PID"], env["PWOS_AGENT_ID"] = strconv.FormatInt(c.PID, 10), c.AgentID
	delete(env, "PWOS_FD")
	if c.Channel == ChannelFD3 {
		env["PWOS_FD"] = "3"
	}
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	return list
}

// home returns the program's home.
func (c Command) home() string { return or(c.Env["HOME"], c.Dir) }

// or returns text, or other if text is empty.
func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

// NewLimits returns the limits that a spawn asks for.
func NewLimits(l *schema.Limits) (limits Limits) {
	if l == nil {
		return limits
	}
	for _, limit := range []struct {
		to   *int64
		from *int64
	}{
		{&limits.CPUSeconds, l.CPUSeconds},
		{&limits.MemoryBytes, l.MemoryBytes},
		{&limits.OpenFiles, l.OpenFiles},
		{&limits.WallSeconds, l.WallSeconds},
		{&limits.Processes, l.Processes},
	} {
		if limit.from != nil {
			*limit.to = *limit.from
		}
	}
	return limits
}
