package tool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"github.com/tetratelabs/wazero/sys"

	"github.com/promptware-os/pwos/schema/fault"
)

const page = 64 << 10

// features has the WebAssembly features that modules may use: version 2.0 without reference types,
// because the engine does not limit the memory of a table that can grow.
const features = api.CoreFeaturesV2 &^ api.CoreFeatureReferenceTypes

// Modules runs WebAssembly modules. It may be used concurrently.
type Modules struct {
	runtime wazero.Runtime
	cache   cache
}

// NewModules returns an engine whose modules have linear memory of at most memoryBytes, rounded down to pages of 64 KiB, and that
// caches at most cached compiled modules.
func NewModules(memoryBytes int64, cached int) (*Modules, error) {
	if memoryBytes < page || memoryBytes > 4<<30 || cached < 1 {
		return nil, fmt.Errorf("start engine: memory of %d bytes, %d modules cached: out of range", memoryBytes, cached)
	}
	ctx := context.Background()
	config := wazero.NewRuntimeConfig().WithCoreFeatures(features).WithMemoryLimitPages(uint32(memoryBytes / page)).
		WithCloseOnContextDone(true).WithDebugInfoEnabled(false)
	m := &Modules{runtime: wazero.NewRuntimeWithConfig(ctx, config), cache: newCache(cached)}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, m.runtime); err != nil {
		return nil, errors.Join(fmt.Errorf("start engine: %w", err), m.Close())
	}
	return m, nil
}

// Close frees the engine. There must be no calls in flight.
func (m *Modules) Close() error { return m.runtime.Close(context.Background()) }

// run runs the _start function of a module. It stops the module soon after ctx is done or the time limit.
func (m *Modules) run(ctx context.Context, j job) (output, error) {
	compiled, release, err := m.compile(ctx, j)
	if err != nil {
		return output{}, err
	}
	defer release()
	timed, cancelTime := context.WithTimeoutCause(ctx, j.limits.Time, overdue(j.limits.Time))
	defer cancelTime()
	running, stop := context.WithCancelCause(timed)
	defer stop(nil)
	out := &bounded{limit: j.limits.OutputBytes, full: func() { stop(tooLong(j.limits.OutputBytes)) }}
	said := &tail{}
	began := time.Now()
	config := wazero.NewModuleConfig().WithName("").WithArgs(j.args...).
		WithStdin(bytes.NewReader(j.input)).WithStdout(out).WithStderr(said).
		WithWalltime(func() (int64, int32) { return 0, 0 }, sys.ClockResolution(time.Millisecond)).
		WithNanotime(func() int64 { return int64(time.Since(began)) }, sys.ClockResolution(time.Microsecond)).
		WithNanosleep(func(ns int64) { sleep(running, time.Duration(ns)) }).
		WithRandSource(random(j))
	instance, err := m.runtime.InstantiateModule(running, compiled, config)
	if instance != nil {
		err = errors.Join(err, instance.Close(context.WithoutCancel(ctx)))
	}
	return output{out.data, string(said.data)}, verdict(running, out, err)
}

// verdict returns the error of a module that has ended, nil if it succeeded.
func verdict(running context.Context, out *bounded, err error) error {
	exit, exited := errors.AsType[*sys.ExitError](err)
	switch {
	case out.over, running.Err() != nil: // a module may exit with 0 after its sleep was canceled
		return context.Cause(running)
	case err == nil, exited && exit.ExitCode() == 0:
		return nil
	case exited:
		return failed("exit code %d", exit.ExitCode())
	}
	return failed("%s", firstLine(err))
}

// compile returns the compiled module of a job, which is valid until release is called.
func (m *Modules) compile(ctx context.Context, j job) (compiled wazero.CompiledModule, release func(), err error) {
	if compiled, release, ok := m.cache.get(j.tool.digest); ok {
		return compiled, release, nil
	}
	bits, err := checkShape(j.tool.bits)
	if err != nil {
		return nil, nil, err
	}
	timed, cancel := context.WithTimeoutCause(ctx, j.limits.CompileTime, fault.ToolTimeout.New("the time limit has passed: %s to compile it", j.limits.CompileTime))
	defer cancel()
	compiled, err = m.translate(timed, bits)
	if timed.Err() != nil {
		if err == nil {
			err = compiled.Close(context.WithoutCancel(ctx))
		}
		return nil, nil, errors.Join(context.Cause(timed), err)
	}
	if err != nil {
		return nil, nil, badModule("%s", firstLine(err))
	}
	if _, ok := compiled.ExportedFunctions()["_start"]; !ok {
		return nil, nil, errors.Join(badModule("it exports no _start"), compiled.Close(ctx))
	}
	for _, f := range compiled.ImportedFunctions() {
		if from, name, _ := f.Import(); from != wasi_snapshot_preview1.ModuleName {
			return nil, nil, errors.Join(badModule("it imports %.64q of %.64q", name, from), compiled.Close(ctx))
		}
	}
	compiled, release = m.cache.put(j.tool.digest, compiled)
	return compiled, release, nil
}

// translate compiles an untrusted module. It recovers a panic of the compiler and returns it as an error. It uses one worker: more
// would take processors from the kernel, and could panic in goroutines that cannot be recovered.
func (m *Modules) translate(ctx context.Context, bits []byte) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			compiled, err = nil, fmt.Errorf("compile: %v", p)
		}
	}()
	return m.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, 1), bits)
}

// random returns the random source of a module. It depends only on the module, arguments and input.
func random(j job) *rand.ChaCha8 {
	h := sha256.New()
	for _, part := range append([]string{j.tool.digest}, j.args...) {
		h.Write([]byte(part + "\x00"))
	}
	h.Write(j.input)
	return rand.NewChaCha8([32]byte(h.Sum(nil)))
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// firstLine returns the first line of an error, at most 256 bytes. The other lines have the stack of the module.
func firstLine(err error) string {
	text, _, _ := bytes.Cut([]byte(err.Error()), []byte{'\n'})
	const most = 256 // bytes
	if len(text) > most {
		text = text[:most]
	}
	return string(bytes.ToValidUTF8(text, []byte("?")))
}
