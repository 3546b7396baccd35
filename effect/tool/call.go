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

// Files reads files below root; *rootfs.Tree implements it.
type Files interface {
	Read(p uri.Place, most int64) (rootfs.File, error)
}

// Limits bounds one call; 0 means the default.
type Limits struct {
	Time        time.Duration // 10 s
	CompileTime time.Duration // to compile a module that is not in the cache: Time, but at least 30 s
	MemoryBytes int64         // private memory of each process of a program: 512 MiB; NewModules has the limit of modules
	OutputBytes int64         // 1 MiB
	ToolBytes   int64         // of the tool's file: 16 MiB
}

// leastMemory is the smallest memory limit of a program, in bytes. The host's shim runs under the limit before the program does, and
// needs the stacks of its threads.
const leastMemory = 256 << 20

func (l Limits) normal() Limits {
	l.Time = cmp.Or(l.Time, 10*time.Second)
	l.CompileTime = cmp.Or(l.CompileTime, max(l.Time, 30*time.Second))
	l.MemoryBytes = max(cmp.Or(l.MemoryBytes, 512<<20), leastMemory)
	l.OutputBytes = cmp.Or(l.OutputBytes, 1<<20)
	l.ToolBytes = cmp.Or(l.ToolBytes, 16<<20)
	return l
}

// Caller calls the tools of a space. Its fields must be set before use. It may be used concurrently, and does not limit
// the number of calls in flight.
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
	// PID and AgentID identify the process for which a program runs.
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

// Result has the tool of a call and its output.
type Result struct {
	URI      string
	Digest   string // of the tool's file, see rootfs.Digest; the journal records it
	Kind     Kind
	Output   []byte               // of Call: one JSON value on one line
	Manifest *schema.ToolManifest // of Describe: it always has a name
	// Said is the end of the standard error of a failed tool.
	Said string
}

// tool is a file that is a tool.
type tool struct {
	uri    string
	digest string
	kind   Kind
	bits   []byte
}

// Call runs the tool at a path and returns its output. If the tool was found, the result is not nil, even with an error. The error is
// a fault of uri, of rootfs or of a tool, or the cause of ctx.
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

// Describe returns the manifest of the tool at a path: the manifest file next to it, else its output for --describe. It ignores Input.
// If the manifest file is invalid, Describe returns an error and does not run the tool.
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

// manifest returns the content of the manifest file of a tool.
func (c *Caller) manifest(t *tool) ([]byte, error) {
	at, err := c.Space.Resolve(t.uri+".json", "")
	if err != nil {
		return nil, err
	}
	f, err := c.Files.Read(at, c.Limits.normal().OutputBytes)
	return f.Data, err
}

// magic is the first bytes of every WebAssembly module.
var magic = []byte("\x00asm")

// find returns the tool at a path.
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
		return nil, fault.ToolNotCallable.New("call %s: it is neither a WebAssembly module nor an executable file", at.URI)
	}
	return t, nil
}

// run runs a tool with the given input and arguments. It returns the output as one line, or the end of the standard error with an error.
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
	data, err = schema.Compact(out.data) // the answer must be one line
	return data, "", err
}

// job is one run of a tool.
type job struct {
	tool   *tool
	args   []string // args[0] is the tool's name
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

// bounded is a writer that stores at most limit bytes. A write beyond the limit calls full once and stores nothing.
type bounded struct {
	limit int64
	data  []byte
	full  func()
	over  bool
}

// Write implements io.Writer. It fails only beyond the limit.
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

// tail is a writer that stores the last saidBytes bytes.
type tail struct{ data []byte }

// saidBytes is the length of the end of a tool's standard error that is stored, in bytes.
const saidBytes = 4 << 10

// Write implements io.Writer. It never fails.
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

// badModule returns the fault for a module that is invalid, or needs an unsupported feature.
func badModule(format string, args ...any) *fault.Fault {
	return fault.ToolBadModule.New("the module cannot be run: "+format, args...)
}

// cannotStart returns the fault for a program that did not start.
func cannotStart(format string, args ...any) *fault.Fault {
	return fault.ToolCannotStart.New("the program cannot be started: "+format, args...)
}

// failed returns the fault for a tool that ended with an error.
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
