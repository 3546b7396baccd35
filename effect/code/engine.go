package code

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/evanw/esbuild/pkg/api"
	"modernc.org/quickjs"
)

// setup runs in a runtime before the code of a handler.
//
//go:embed setup.js
var setup string

// maxCompiled is the number of compiled handlers in a worker's cache. A further one empties the cache.
const maxCompiled = 256

// engine compiles handlers and calls them. It is not safe for concurrent use.
type engine struct {
	limits   Limits
	setup    []byte            // compiled
	compiled map[string][]byte // by source
}

func newEngine(l Limits) (*engine, error) {
	e := &engine{limits: l, compiled: make(map[string][]byte)}
	vm, err := e.open()
	if err != nil {
		return nil, err
	}
	e.setup, err = vm.Compile(setup, quickjs.EvalGlobal)
	return e, errors.Join(err, vm.Close())
}

func (e *engine) open() (*quickjs.VM, error) {
	vm, err := quickjs.NewVM()
	if err != nil {
		return nil, fmt.Errorf("make runtime: %w", err)
	}
	vm.SetMemoryLimit(uintptr(e.limits.MemoryBytes))
	return vm, nil
}

// do answers a request. close, which may be nil, frees its runtime, and may be called after the answer was sent.
func (e *engine) do(request *frame) (answer frame, close func() error, err error) {
	vm, err := e.open()
	if err != nil {
		return answer, nil, err
	}
	limit := e.limits.Time
	if request.is == check {
		limit = checkTime
	}
	r := &run{vm: vm, until: time.Now().Add(limit), most: e.limits.OutputBytes}
	status, text := r.do(e, request)
	return frame{status, [2][]byte{clip([]byte(text), status, e.limits), r.logged}}, vm.Close, nil
}

// clip bounds the text of an error.
func clip(text []byte, status byte, l Limits) []byte {
	if status != done && len(text) > maxSaid {
		text = text[:maxSaid]
	}
	return text
}

// compile returns the bytecode of a handler.
func (e *engine) compile(vm *quickjs.VM, source string) (bytecode []byte, problem string) {
	if bytecode = e.compiled[source]; bytecode != nil {
		return bytecode, ""
	}
	script, problem := bundle(source)
	if problem != "" {
		return nil, problem
	}
	bytecode, err := vm.Compile(script, quickjs.EvalGlobal)
	if err != nil {
		return nil, err.Error()
	}
	if len(e.compiled) == maxCompiled {
		clear(e.compiled)
	}
	e.compiled[source] = bytecode
	return bytecode, ""
}

// run is one call, in a runtime of its own.
type run struct {
	vm     *quickjs.VM
	until  time.Time
	most   int64
	logged []byte
	ended  bool // the handler has an outcome: status and text
	status byte
	text   string
}

func (r *run) do(e *engine, request *frame) (byte, string) {
	bytecode, problem := e.compile(r.vm, string(request.text[0]))
	if problem != "" {
		return badCode, problem
	}
	err := errors.Join(r.vm.RegisterHostFunc("pwosLog", r.log), r.vm.RegisterHostFunc("pwosEnd", r.end))
	if err == nil {
		err = r.timed(func() error { _, err := r.vm.EvalBytecode(e.setup); return err })
	}
	if err == nil {
		err = r.timed(func() error { _, err := r.vm.EvalBytecode(bytecode); return err })
	}
	if err != nil {
		return r.failed(err)
	}
	if request.is == check {
		err = r.timed(func() error { _, err := r.vm.Call("pwosCheck"); return err })
	} else {
		err = r.timed(func() error { _, err := r.vm.Call("pwosCall", string(request.text[1]), r.most); return err })
	}
	for err == nil && !r.ended && time.Now().Before(r.until) {
		var n int
		if err = r.timed(func() (err error) { n, err = r.vm.ExecutePendingJobs(); return err }); n == 0 {
			break
		}
	}
	switch {
	case err != nil:
		return r.failed(err)
	case r.ended && r.status == done && int64(len(r.text)) > r.most:
		return overOutput, ""
	case r.ended:
		return r.status, r.text
	case !time.Now().Before(r.until):
		return overTime, ""
	}
	return unusable, "a promise that never resolves"
}

// timed runs script at least until its time limit, so that the clock distinguishes an interrupt from a failure.
func (r *run) timed(script func() error) error {
	if err := r.vm.SetEvalTimeout(max(time.Until(r.until), 0) + 2*time.Millisecond); err != nil { // it counts whole milliseconds
		return err
	}
	return script()
}

// failed returns the status and text of an exception that the script did not catch.
func (r *run) failed(err error) (byte, string) {
	switch text := err.Error(); {
	case !time.Now().Before(r.until):
		return overTime, ""
	case strings.Contains(text, "out of memory"), strings.Contains(text, "stack overflow"):
		return overMemory, text
	default:
		return threw, text
	}
}

// end records the handler's outcome: status and text. It ignores later outcomes, and any after the time limit, since a
// promise may be rejected because of the interrupt.
func (r *run) end(args []any) (any, error) {
	status, _ := args[0].(int)
	text, _ := args[1].(string)
	if !r.ended && time.Now().Before(r.until) && status >= 0 && status < int(statuses) {
		r.ended, r.status, r.text = true, byte(status), text
	}
	return nil, nil
}

// log records a line of the console.
func (r *run) log(args []any) (any, error) {
	line, _ := args[0].(string)
	if room := maxLogged - len(r.logged); len(line)+1 > room {
		line = line[:max(0, room-1)]
	}
	if len(r.logged) < maxLogged {
		r.logged = append(append(r.logged, line...), '\n')
	}
	return nil, nil
}

// bundle compiles TypeScript to a script that sets the global pwosModule. problem is the error of the code, "" if it has
// none.
func bundle(source string) (script, problem string) {
	built := api.Build(api.BuildOptions{
		Stdin:  &api.StdinOptions{Contents: source, Loader: api.LoaderTS, Sourcefile: "code"},
		Bundle: true, Format: api.FormatIIFE, GlobalName: "pwosModule", Target: api.ES2023, Platform: api.PlatformNeutral,
		TsconfigRaw: "{}", Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone, LogLevel: api.LogLevelSilent, LogLimit: 1,
		AbsWorkingDir: "/",
		Plugins: []api.Plugin{{Name: "nothing", Setup: func(b api.PluginBuild) {
			b.OnResolve(api.OnResolveOptions{Filter: `.*`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
				return api.OnResolveResult{}, fmt.Errorf("nothing can be imported: a handler has no modules")
			})
		}}},
	})
	if len(built.Errors) > 0 {
		wrong := built.Errors[0]
		if wrong.Location == nil {
			return "", wrong.Text
		}
		return "", fmt.Sprintf("line %d, column %d: %s", wrong.Location.Line, wrong.Location.Column+1, wrong.Text)
	}
	return string(built.OutputFiles[0].Contents), ""
}
