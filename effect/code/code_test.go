package code_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/code"
	"github.com/promptware-os/pwos/host"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// place is a set of workers with what they need, and their log.
type place struct {
	*code.Workers
	host *host.Host
	log  *logged
}

// logged is a log that counts the workers that were started.
type logged struct {
	testkit.Buffer
	started chan struct{} // has a value for each worker that was started
}

func (l *logged) Write(p []byte) (int, error) {
	n, err := l.Buffer.Write(p)
	if bytes.Contains(p, []byte("has started")) {
		l.started <- struct{}{}
	}
	return n, err
}

func workers(t testing.TB, l code.Limits) place {
	t.Helper()
	h, err := host.New(host.Options{})
	testkit.Must(t, err)
	scratch, log := t.TempDir(), &logged{started: make(chan struct{}, 1000)}
	w := &code.Workers{
		Host: func() (*host.Host, error) { return h, nil }, Scratch: scratch, Limits: l,
		Log: slog.New(slog.NewTextHandler(log, nil)),
	}
	t.Cleanup(func() {
		w.Close()
		h.Close(context.Background(), 0)
		if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
			t.Errorf("workers have left files: %v, %v", left, err)
		}
	})
	return place{w, h, log}
}

// call calls a handler.
func (p place) call(ctx context.Context, source, input string) (string, error) {
	do := &kernel.Invocation{Registration: &schema.Registration{Name: "Sum.Add", Code: &source}, Data: []byte(input)}
	out, err := p.Invoke(ctx, &kernel.Job{PID: 7}, do)
	return string(out), err
}

const adding = `
interface Input { a: number; b: number }
export function handler(input: Input): { sum: number } { return { sum: input.a + input.b } }`

// TestHandler: a handler takes and returns JSON values, synchronously or not.
func TestHandler(t *testing.T) {
	t.Parallel()
	p := workers(t, code.Limits{})
	for source, want := range map[string]string{
		adding: `{"sum":3}`,
		`export const handler = async (i: any) => { await null; return [i.a] }`:                              `[1]`,
		`export const handler = (i) => new Promise((ok) => Promise.resolve().then(() => ok("later")))`:       `"later"`,
		`enum E { One = 1 } namespace N { export const x = 2 } export const handler = () => [E.One, N.x]`:    `[1,2]`,
		`export default 1; export const handler = () => null`:                                                `null`,
		`export const handler = () => ({ toJSON: () => "made" })`:                                            `"made"`,
		`export const handler = () => "\u{1F600}"`:                                                           `"😀"`,
		`export const handler = () => eval("1 + 1") + new Function("return 1")()`:                            `3`,
		`export const handler = () => { console.log(1); console.error({ a: 1 }, new Error("e")); return 0 }`: `0`,
	} {
		if err := p.Check(t.Context(), source); err != nil {
			t.Errorf("%s: %v", source, err)
		}
		for range 2 {
			if got, err := p.call(t.Context(), source, `{"a":1,"b":2}`); err != nil || got != want {
				t.Errorf("%s: %s, %v, want %s", source, got, err, want)
			}
		}
	}
	if log := p.log.String(); !strings.Contains(log, `Error: e`) || !strings.Contains(log, "syscall=Sum.Add pid=7") {
		t.Errorf("logged %s", log)
	}
	if n := strings.Count(p.log.String(), "has started"); n != 1 {
		t.Errorf("%d workers were started", n)
	}
}

// TestBadCode: code that cannot be registered gets one error, with line and column.
func TestBadCode(t *testing.T) {
	t.Parallel()
	p := workers(t, code.Limits{})
	all := map[string]string{
		"export const handler = (\n  i => {":                                  "line 2, column 9: ",
		"import fs from 'fs'\nexport const handler = () => fs":                "line 1, column 16: nothing can be imported",
		"export const handler = () => import('./x')":                          "line 1, column 37: nothing can be imported",
		"export const handler = () => require('child_process')":               "line 1, column 38: nothing can be imported",
		"export * from 'https://example.com/x.ts'":                            "nothing can be imported",
		"const handler = () => 1":                                             "it exports no handler",
		"export default () => 1":                                              "it exports a default, and no handler",
		"export const handler = 1":                                            "it exports no handler",
		"export const handler = await 1":                                      "line 1, column 24: Top-level await",
		"\u0000":                                                              "line 1, column 1: ",
		"throw new Error('at once')":                                          "it throws when it is loaded: Error: at once",
		"export const handler = none":                                         "ReferenceError",
		"export const handler = 'x'.repeat(1e9)":                              "it needs more memory",
		"export const handler = " + strings.Repeat("(", 60_000):               "",
		"export const handler = " + strings.Repeat("a?(b):(c)=>", 5_000):      "",
		"export const handler = (" + strings.Repeat("a?(b, c:", 3_000) + "1)": "",
	}
	if testkit.Rounds(0, 1, 1) > 0 { // it computes for all of its 5 s
		all["for (;;) {} export const handler = 1"] = "it takes more than 5s to load"
	}
	for source, want := range all {
		err := p.Check(t.Context(), source)
		if !errors.Is(err, fault.SyscallBadCode) && !errors.Is(err, fault.ProviderDied) || !strings.Contains(err.Error(), want) || len(err.Error()) > 2_000 {
			t.Errorf("%.60s: %v, want %s", source, err, want)
		}
	}
	if err := p.Check(t.Context(), adding); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestHostileHandler: whatever a handler does, its caller gets one clear error in bounded time, and the next call is served.
func TestHostileHandler(t *testing.T) {
	t.Parallel()
	l := code.Limits{Time: time.Minute, MemoryBytes: 32 << 20, OutputBytes: 64 << 10}
	patient := workers(t, l)
	l.Time = 300 * time.Millisecond
	hurried := workers(t, l)
	handler := func(body string) string { return "export const handler = (i) => {" + body + "}" }
	for body, want := range map[string]struct {
		id   fault.ID
		text string
	}{
		`for (;;) {}`: {fault.ProviderTimeout, "it may take 300ms"},
		`try { for (;;) {} } catch {} finally { for (;;) {} }`:                              {fault.ProviderTimeout, ""},
		`const p = () => { Promise.resolve().then(p) }; p(); return new Promise(() => {})`:  {fault.ProviderTimeout, ""},
		`for (;;) console.log("x".repeat(1000))`:                                            {fault.ProviderTimeout, ""},
		`return /(a+)+b/.test("a".repeat(100))`:                                             {fault.ProviderTimeout, ""},
		`let n = 3n; for (;;) n = n * n % (2n ** 500000n)`:                                  {fault.ProviderTimeout, ""},
		`Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)`:                      {fault.ProviderFailed, ""},
		`const a = []; for (;;) a.push(new Array(1000).fill(1))`:                            {fault.ProviderLimit, "memory"},
		`return new ArrayBuffer(2 ** 30).byteLength`:                                        {fault.ProviderLimit, "memory"},
		`const f = () => f() + 1; return f()`:                                               {fault.ProviderLimit, "stack"},
		`let o = {}; for (let i = 0; i < 1e5; i++) o = { o }; return o`:                     {fault.ProviderLimit, "stack"},
		`return "x".repeat(100 << 20)`:                                                      {fault.ProviderLimit, ""},
		`return "x".repeat(1 << 20)`:                                                        {fault.ProviderLimit, "returned more than 65536 bytes"},
		`return "é".repeat(40 << 10)`:                                                       {fault.ProviderLimit, "returned more than 65536 bytes"},
		`throw new TypeError("no such card")`:                                               {fault.ProviderFailed, "threw: TypeError: no such card"},
		`throw "a text"`:                                                                    {fault.ProviderFailed, "threw: a text"},
		`throw undefined`:                                                                   {fault.ProviderFailed, "threw: undefined"},
		`throw { get message() { throw 1 }, toJSON() { throw 2 }, toString() { throw 3 } }`: {fault.ProviderFailed, "cannot be shown"},
		`throw new Error("x".repeat(1 << 20))`:                                              {fault.ProviderFailed, "xxx"},
		`return Promise.reject(new Error("later"))`:                                         {fault.ProviderFailed, "Error: later"},
		`return import(i.name)`:                                                             {fault.ProviderFailed, "could not load module"},
		`return require(i.name)`:                                                            {fault.ProviderFailed, ""},
		`return Deno.readTextFileSync("/etc/passwd")`:                                       {fault.ProviderFailed, "ReferenceError"},
		`return process.env`:                                                                {fault.ProviderFailed, "ReferenceError"},
		`return fetch("http://127.0.0.1/")`:                                                 {fault.ProviderFailed, "ReferenceError"},
		`return std.open("/etc/passwd", "r")`:                                               {fault.ProviderFailed, "ReferenceError"},
		`return new Promise(() => {})`:                                                      {fault.ProviderBadAnswer, "never resolves"},
		`return undefined`:                                                                  {fault.ProviderBadAnswer, "undefined"},
		`return () => 1`:                                                                    {fault.ProviderBadAnswer, "function"},
		`const o = {}; o.o = o; return o`:                                                   {fault.ProviderBadAnswer, "circular"},
		`return "\ud800"`:                                                                   {fault.ProviderBadAnswer, "surrogate"},
		`return { n: 1n }`:                                                                  {fault.ProviderBadAnswer, "BigInt"},
		`let o = 1; for (let i = 0; i < 1000; i++) o = [o]; return o`:                       {fault.ProviderBadAnswer, "nested deeper"},
		`JSON.stringify = () => "no JSON"; return globalThis.pwosEnd(0, "no JSON")`:         {fault.ProviderFailed, "TypeError"},
	} {
		if testkit.RaceDetector() && want.text == "stack" { // a worker's stack is too large for its limit of memory then
			continue
		}
		p := patient
		if want.id == fault.ProviderTimeout {
			p = hurried
		}
		began := time.Now()
		got, err := p.call(t.Context(), handler(body), `{"name":"fs"}`)
		if !errors.Is(err, want.id) || !strings.Contains(err.Error(), want.text) || len(err.Error()) > 1_000 {
			t.Errorf("%s: %.100q, %v after %v, want %s %s", body, got, err, time.Since(began), want.id, want.text)
		}
		if got, err := patient.call(t.Context(), adding, `{"a":1,"b":2}`); err != nil || got != `{"sum":3}` {
			t.Errorf("after %s: %s, %v", body, got, err)
		}
	}
	if log := hurried.log.String(); len(log) > 100_000 {
		t.Errorf("%d bytes are logged", len(log))
	}
}

// TestFreshRuntime: no call sees the changes of another, of the same code or of other code.
func TestFreshRuntime(t *testing.T) {
	t.Parallel()
	p := workers(t, code.Limits{})
	const spoil = `let n = 0
export const handler = () => {
	const before = [n++, ({} as any).own, globalThis.mine, [].concat === undefined, typeof JSON.parse]
	Object.prototype.own = 1; globalThis.mine = 2; Array.prototype.concat = undefined; Promise.prototype.then = null
	Object.freeze(Object.prototype)
	return before
}`
	for i := range 3 {
		if got, err := p.call(t.Context(), spoil, `{}`); err != nil || got != `[0,null,null,false,"function"]` {
			t.Errorf("call %d: %s, %v", i, got, err)
		}
	}
	if got, err := p.call(t.Context(), adding, `{"a":1,"b":2}`); err != nil || got != `{"sum":3}` {
		t.Errorf("another: %s, %v", got, err)
	}
}

// TestWorkerIsKilled: a worker that is killed between calls is replaced, and if one is killed during a call, its caller gets one error.
func TestWorkerIsKilled(t *testing.T) {
	t.Parallel()
	p := workers(t, code.Limits{Time: time.Minute})
	for range 3 {
		if got, err := p.call(t.Context(), adding, `{"a":1,"b":2}`); err != nil || got != `{"sum":3}` {
			t.Fatalf("%s, %v", got, err)
		}
		<-p.log.started
		p.kill(t)
	}
	failed := make(chan error, 1)
	go func() {
		_, err := p.call(t.Context(), `export const handler = () => { for (;;) {} }`, `{}`)
		failed <- err
	}()
	<-p.log.started
	p.kill(t)
	if err := <-failed; !errors.Is(err, fault.ProviderDied) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("the caller has gone")
	go func() {
		_, err := p.call(ctx, `export const handler = () => { for (;;) {} }`, `{}`)
		failed <- err
	}()
	<-p.log.started
	cancel(gone)
	if err := <-failed; !errors.Is(err, gone) {
		t.Errorf("%v", err)
	}
}

// kill kills the running workers, as another process would.
func (p place) kill(t *testing.T) {
	t.Helper()
	for _, one := range p.host.Processes() {
		if process, err := os.FindProcess(one.OSPID()); err != nil || process.Kill() != nil {
			t.Errorf("kill %d: %v", one.OSPID(), err)
		}
		<-one.Done()
	}
}

// TestManyCallers: 64 concurrent callers each get their own answer.
func TestManyCallers(t *testing.T) {
	t.Parallel()
	p := workers(t, code.Limits{})
	slots := make(chan struct{}, 3)
	var all sync.WaitGroup
	for i := range 64 {
		all.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			source, want := adding, fmt.Sprintf(`{"sum":%d}`, i+1)
			if i%8 == 0 {
				source, want = `export const handler = () => { throw new Error("on purpose") }`, ""
			}
			if got, err := p.call(t.Context(), source, fmt.Sprintf(`{"a":%d,"b":1}`, i)); got != want || (err == nil) != (want != "") {
				t.Errorf("caller %d: %s, %v", i, got, err)
			}
		})
	}
	all.Wait()
	if n := len(p.host.Processes()); n > 3 {
		t.Errorf("%d workers", n)
	}
}

// BenchmarkCall is a call of a handler that has been called before.
func BenchmarkCall(b *testing.B) {
	p := workers(b, code.Limits{})
	for b.Loop() {
		if _, err := p.call(b.Context(), adding, `{"a":1,"b":2}`); err != nil {
			b.Fatal(err)
		}
	}
}
