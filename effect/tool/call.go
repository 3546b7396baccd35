package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"path"
	"time"

	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/uri"
)

// Files reads below root: a *rootfs.Tree.
type Files interface {
	Read(p uri.Place, most int64) (rootfs.File, error)
}

// Limits bound one call. Zero means the default.
type Limits struct {
	Time        time.Duration // 10 s
	CompileTime time.Duration // of a module that is not in the cache: as long as a call gets, and 30 s at least
	MemoryBytes int64         // 512 MiB: private memory of each process of a program; of a module NewModules says it
	OutputBytes int64         // 1 MiB
	ToolBytes   int64         // 16 MiB: the file
}

// leastMemory is what a program gets at least, in bytes: the host's shim lives under its limit before the program does, and each
// of its threads counts with its stack.
const leastMemory = 256 << 20

func (l Limits) normal() Limits {
	l.Time = cmp.Or(l.Time, 10*time.Second)
	l.CompileTime = cmp.Or(l.CompileTime, max(l.Time, 30*time.Second))
	l.MemoryBytes = max(cmp.Or(l.MemoryBytes, 512<<20), leastMemory)
	l.OutputBytes = cmp.Or(l.OutputBytes, 1<<20)
	l.ToolBytes = cmp.Or(l.ToolBytes, 16<<20)
	return l
}

// Caller calls the tools of one space. Its fields are set once; it may be used by many goroutines. Its user bounds
// how many calls there are at once.
type Caller struct {
	Space    *uri.Space
	Files    Files
	Modules  *Modules
	Programs *Programs // nil: programs are not run
	Limits   Limits
}

// Request is one call.
type Request struct {
	Path  string // such as os/tools/sum or ./sum
	Base  string // the caller's adopted identity, or ""
	Input []byte // one JSON value
	// PID and AgentID are those of the process that a program runs for.
	PID     int64
	AgentID string
}

// Kind is the kind of a tool.
type Kind string

// The kinds.
const (
	Module  Kind = "module"
	Program Kind = "program"
)

// Result is a tool that was found, and its outcome.
type Result struct {
	URI      string
	Digest   string // of the tool, see rootfs.Digest: it goes to the journal with the call
	Kind     Kind
	Output   []byte               // of Call: one JSON value on one line
	Manifest *schema.ToolManifest // of Describe: its name is always there
	// Said is the end of what a tool that failed wrote to its standard error: for the log, and for callers that may read it.
	Said string
}

// tool is a file that can be called.
type tool struct {
	uri    string
	digest string
	kind   Kind
	bits   []byte
}

// Call runs the tool that a path means and returns its answer. If the tool was found, the result
// names it even with an error: a fault of uri, of rootfs or of a tool, or the cause of ctx.
func (c *Caller) Call(ctx context.Context, r Request) (*Result, error) {
	if !schema.Valid(r.Input) {
		return nil, fault.ToolInvalid.New("call %q: the input is not one JSON value", r.Path)
	}
	t, err := c.find(r.Path, r.Base)
	if err != nil {
		return nil, err
	}
	result := t.result()
	result.Output, result.Said, err = c.run(ctx, t, r, r.Input)
	return result, err
}

// Describe returns a tool's description, found as by Call; Input of the request is ignored. An
// invalid manifest next to it is an error, and the tool is then not run.
func (c *Caller) Describe(ctx context.Context, r Request) (*Result, error) {
	t, err := c.find(r.Path, r.Base)
	if err != nil {
		return nil, err
	}
	result := t.result()
	raw, err := c.manifest(t)
	if errors.Is(err, fault.FileNotFound) {
		raw, result.Said, err = c.run(ctx, t, r, nil, "--describe")
	}
	if err != nil {
		return result, err
	}
	m, invalid := schema.DecodeToolManifest(raw)
	if invalid != nil {
		return result, fault.ToolBadManifest.New("call %s: read manifest: %s", t.uri, invalid.Text())
	}
	m.Name = cmp.Or(m.Name, path.Base(t.uri))
	result.Manifest = m
	return result, nil
}

func (t *tool) result() *Result { return &Result{URI: t.uri, Digest: t.digest, Kind: t.kind} }

// manifest reads the file next to a tool.
func (c *Caller) manifest(t *tool) ([]byte, error) {
	at, err := c.Space.Resolve(t.uri+".json", "")
	if err != nil {
		return nil, err
	}
	f, err := c.Files.Read(at, c.Limits.normal().OutputBytes)
	return f.Data, err
}

// magic begins every WebAssembly module.
var magic = []byte("\x00asm")

// find reads the tool that a path means.
func (c *Caller) find(name, base string) (*tool, error) {
	at, err := c.Space.Resolve(name, base)
	if err != nil {
		return nil, err
	}
	f, err := c.Files.Read(at, c.Limits.normal().ToolBytes)
	if err != nil {
		return nil, err
	}
	t := &tool{uri: at.URI, digest: f.Digest, bits: f.Data}
	switch {
	case bytes.HasPrefix(f.Data, magic):
		t.kind = Module
	case f.Executable:
		t.kind = Program
	default:
		return nil, fault.ToolNotCallable.New("call %s: it is no WebAssembly module, and no executable file", at.URI)
	}
	return t, nil
}

// run runs a tool with the given input and arguments, and returns its output as one line, or the end of what it said.
func (c *Caller) run(ctx context.Context, t *tool, r Request, input []byte, args ...string) (data []byte, said string, err error) {
	j := job{tool: t, args: append([]string{path.Base(t.uri)}, args...), input: input, limits: c.Limits.normal(), pid: r.PID, agent: r.AgentID}
	var out output
	switch {
	case t.kind == Module:
		out, err = c.Modules.run(ctx, j)
	case c.Programs == nil:
		err = fault.ToolNoPrograms.New("programs are not run here: tools.programs = true in the configuration allows them")
	default:
		out, err = c.Programs.run(ctx, j)
	}
	if err == nil && !schema.Valid(out.data) {
		err = notJSON()
	} else if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // the cause, whatever the exit status
	}
	if err != nil {
		return nil, out.said, fault.Prefix(err, "call %s", t.uri)
	}
	data, err = schema.Compact(out.data) // it has to fit a line
	return data, "", err
}

// job is one run of a tool.
type job struct {
	tool   *tool
	args   []string // the tool's name first
	input  []byte
	limits Limits
	pid    int64
	agent  string
}

// output is the output of a tool.
type output struct {
	data []byte
	said string
}

// bounded keeps what is written to it up to a limit. One byte more calls full, and what follows is dropped.
type bounded struct {
	limit int64
	data  []byte
	full  func()
	over  bool
}

// Write never fails before the limit.
func (b *bounded) Write(p []byte) (int, error) {
	room := b.limit - int64(len(b.data))
	if b.over || int64(len(p)) > room {
		if !b.over {
			b.over = true
			b.full()
		}
		return 0, io.ErrShortWrite
	}
	b.data = append(b.data, p...)
	return len(p), nil
}

// tail keeps the last bytes that are written to it.
type tail struct{ data []byte }

// saidBytes is the number of bytes of a tool's standard error that are kept.
const saidBytes = 4 << 10

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > saidBytes {
		p = p[n-saidBytes:]
	}
	if over := len(t.data) + len(p) - saidBytes; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.data = append(t.data, p...)
	return n, nil
}

// badModule refuses a module that is not valid, or needs what there is not.
func badModule(format string, args ...any) *fault.Fault {
	return fault.ToolBadModule.New("the module cannot be run: "+format, args...)
}

// cannotStart returns the error of a program that did not start.
func cannotStart(format string, args ...any) *fault.Fault {
	return fault.ToolCannotStart.New("the program cannot be started: "+format, args...)
}

// failed describes the end of a tool: another exit code than 0, or a limit.
func failed(format string, args ...any) *fault.Fault {
	return fault.ToolFailed.New("the tool failed: "+format, args...)
}

func overdue(limit time.Duration) *fault.Fault {
	return fault.ToolTimeout.New("the time limit has passed: %s", limit)
}

func tooLong(limit int64) *fault.Fault {
	return fault.ToolLimit.New("the output is too long: more than %d bytes", limit)
}

func notJSON() *fault.Fault { return fault.ToolBadOutput.New("the output is not one JSON value") }
