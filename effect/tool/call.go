package tool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/uri"
)

// Files reads below root: a *rootfs.Tree.
type Files interface {
	Read(p uri.Place, most int64) (rootfs.File, error)
}

// Limits bound one call. Zero means the default.
type Limits struct {
	Time        time.Duration // 10 s
	CompileTime time.Duration // 30 s, of a module that is not in the cache
	MemoryBytes int64         // 512 MiB: private memory of each process of a program; of a module NewModules says it
	OutputBytes int64         // 1 MiB
	ToolBytes   int64         // 16 MiB: the file
}

// leastMemory is what a program gets at least, in bytes: the host's shim lives under its limit before the program does, and each
// of its threads counts with its stack.
const leastMemory = 256 << 20

func (l Limits) normal() Limits {
	l.Time = cmp.Or(l.Time, 10*time.Second)
	l.CompileTime = cmp.Or(l.CompileTime, 30*time.Second)
	l.MemoryBytes = max(cmp.Or(l.MemoryBytes, 512<<20), leastMemory)
	l.OutputBytes = cmp.Or(l.OutputBytes, 1<<20)
	l.ToolBytes = cmp.Or(l.ToolBytes, 16<<20)
	return l
}

// Caller calls the tools of one space. Its fields are set once; it may be used by many goroutines. How many calls there
// are at once is for who calls to bound.
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
	Base  string // "" where there is none: the identity that the caller has adopted
	Input []byte // one JSON value
	// PID and AgentID are whom a program runs as.
	PID     int64
	AgentID string
}

// Kind is how a tool runs.
type Kind string

// The kinds.
const (
	Module  Kind = "module"
	Program Kind = "program"
)

// Result is a call that succeeded.
type Result struct {
	URI    string
	Digest string // of the tool, see rootfs.Digest: it goes to the journal with the call
	Kind   Kind
	Output []byte // one JSON value on one line
}

// tool is a file that can be called.
type tool struct {
	uri    string
	digest string
	kind   Kind
	bits   []byte
}

// Call runs the tool that a path means and returns what it answered. Where a tool was found the error is a *ToolError.
func (c *Caller) Call(ctx context.Context, r Request) (*Result, error) {
	if !schema.Valid(r.Input) {
		return nil, fmt.Errorf("call %q: %w", r.Path, ErrInput)
	}
	t, err := c.find(r.Path, r.Base)
	if err != nil {
		return nil, err
	}
	out, err := c.run(ctx, t, r, r.Input)
	if err != nil {
		return nil, err
	}
	return &Result{URI: t.uri, Digest: t.digest, Kind: t.kind, Output: out}, nil
}

// Description is what is known of a tool.
type Description struct {
	URI      string
	Digest   string
	Kind     Kind
	Manifest *schema.ToolManifest // its name is always there
}

// Describe returns what a tool says of itself; Input of the request is not looked at. A manifest beside it that is not
// valid is an error, and the tool is then not asked.
func (c *Caller) Describe(ctx context.Context, r Request) (*Description, error) {
	t, err := c.find(r.Path, r.Base)
	if err != nil {
		return nil, err
	}
	raw, err := c.manifest(t)
	if errors.Is(err, rootfs.ErrNotFound) {
		raw, err = c.run(ctx, t, r, nil, "--describe")
	}
	if err != nil {
		return nil, err
	}
	m, fault := schema.DecodeToolManifest(raw)
	if fault != nil {
		return nil, &ToolError{URI: t.uri, Digest: t.digest, Err: fmt.Errorf("read manifest: %w", fault)}
	}
	m.Name = cmp.Or(m.Name, path.Base(t.uri))
	return &Description{URI: t.uri, Digest: t.digest, Kind: t.kind, Manifest: m}, nil
}

// manifest reads the file beside a tool.
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
		return nil, fmt.Errorf("call %s: %w", at.URI, ErrNotCallable)
	}
	return t, nil
}

// run runs a tool with the given input and arguments, and returns its output as one line. The error is a *ToolError.
func (c *Caller) run(ctx context.Context, t *tool, r Request, input []byte, args ...string) ([]byte, error) {
	j := job{tool: t, args: append([]string{path.Base(t.uri)}, args...), input: input, limits: c.Limits.normal(), pid: r.PID, agent: r.AgentID}
	var out output
	var err error
	switch {
	case t.kind == Module:
		out, err = c.Modules.run(ctx, j)
	case c.Programs == nil:
		err = ErrNoPrograms
	default:
		out, err = c.Programs.run(ctx, j)
	}
	if err == nil && !schema.Valid(out.data) {
		err = ErrNotJSON
	} else if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx) // whatever it ended with, that is why
	}
	if err != nil {
		return nil, &ToolError{URI: t.uri, Digest: t.digest, Err: err, Said: out.said}
	}
	return oneLine(out.data), nil
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

// output is what a tool has written.
type output struct {
	data []byte
	said string
}

// oneLine returns a valid JSON value without the white space around its tokens: it has to fit a line.
func oneLine(value []byte) []byte {
	out := make([]byte, 0, len(value))
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case quoted && c == '\\':
			out = append(out, c, value[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			continue
		}
		out = append(out, value[i])
	}
	return out
}
