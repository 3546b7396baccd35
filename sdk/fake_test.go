package sdk_test

import (
	"bufio"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sdk"
)

// fake is the kernel's end of a connection, which a test controls.
type fake struct {
	net.Conn
	lines *bufio.Scanner
}

const prologue = `{"kind":"command","type":"Syscall.Authenticate","data":{"scheme":"none"},"metadata":{"id":"p","timestamp":0}}` + "\n"

// say writes to the client, which may have ended.
func (f *fake) say(text string) { _, _ = f.Write([]byte(text)) }

// greet completes the prologue.
func (f *fake) greet() {
	f.say(prologue)
	f.lines.Scan()
}

// hear reads a call and returns its id.
func (f *fake) hear() string {
	f.lines.Scan()
	m, _ := schema.Decode(f.lines.Bytes(), schema.OsMessage)
	return m.Meta.ID
}

// reply returns an answer with a payload.
func reply(id, payload string) string {
	return fmt.Sprintf(`{"kind":"reply","type":"Syscall.Ping","data":{"payload":%s},"metadata":{"id":"a","timestamp":0,"causation":"%s"}}`+"\n", payload, id)
}

// refusal returns an error. meta is appended to the metadata.
func refusal(meta string) string {
	return `{"kind":"error","type":"Syscall.Ping","data":{"code":418,"message":"no"},"metadata":{"id":"a","timestamp":0` + meta + `}}` + "\n"
}

const hungUp = "daemon.hung_up 503 with a fix"

// TestFaultyKernels: each call ends, with one error, also if the kernel violates the protocol or stops answering.
func TestFaultyKernels(t *testing.T) {
	t.Parallel()
	// Timeouts in milliseconds; short is for answers that never come. With "hurry" the first call has 50.
	const long, short = "60000", "50"
	for name, tt := range map[string]struct {
		args   []string // timeout, number of calls, options
		kernel func(f *fake)
		want   string
	}{
		"everything in pieces": {[]string{long, "1"}, func(f *fake) {
			for _, c := range []byte(prologue) {
				f.say(string(c))
			}
			f.lines.Scan()
			for _, c := range []byte(reply(f.hear(), `"ü😀"`)) {
				f.say(string([]byte{c}))
			}
		}, "ü😀"},
		"several in one": {[]string{long, "2"}, func(f *fake) {
			f.greet()
			f.say(reply("another's", "9") + "{\"kind\":\"event\",\"type\":\"A.B\",\"data\":1}\r\n" + reply(f.hear(), "1"))
			f.say(reply(f.hear(), "2"))
		}, "1\n2"},
		"a long line": {[]string{long, "1"}, func(f *fake) {
			f.greet()
			f.say(reply(f.hear(), `1`+strings.Repeat(" ", 3<<20)))
		}, "1"},
		"dies in a call":       {[]string{long, "2"}, func(f *fake) { f.greet(); f.hear() }, hungUp + "\n" + hungUp},
		"dies in an answer":    {[]string{long, "1"}, func(f *fake) { f.greet(); f.say(strings.TrimSpace(reply(f.hear(), "1"))) }, hungUp},
		"dies at once":         {[]string{long, "1"}, func(*fake) {}, hungUp},
		"sends no message":     {[]string{long, "2"}, func(f *fake) { f.greet(); f.hear(); f.say("moon\n"); f.hear() }, hungUp + "\n" + hungUp},
		"sends no object":      {[]string{long, "1"}, func(f *fake) { f.greet(); f.hear(); f.say("null\n"); f.hear() }, hungUp},
		"never sends anything": {[]string{short, "1"}, func(f *fake) { f.hear() }, "daemon.no_answer 503 with a fix"},
		"answers too late": {[]string{long, "2", "hurry"}, func(f *fake) {
			f.greet()
			late := f.hear()
			now := f.hear()
			f.say(reply(late, "1") + reply(now, "2"))
			f.hear()
		}, "daemon.no_answer 503 with a fix\n2"},
		"answers late, within wait_ms": {[]string{long, "1", "hurry", "wait"}, func(f *fake) {
			f.greet()
			id := f.hear()
			time.Sleep(300 * time.Millisecond) // six times the timeout without wait_ms
			f.say(reply(id, "1"))
		}, "1"},
		"has no timeout": {[]string{"Infinity", "1"}, func(f *fake) {
			f.greet()
			id := f.hear()
			time.Sleep(10 * time.Millisecond)
			f.say(reply(id, "1"))
		}, "1"},
		"refuses without an id": {[]string{long, "4"}, func(f *fake) {
			f.greet()
			f.hear()
			f.say(refusal("")) // as if the id could not be read
			for _, id := range []string{`"moon.full"`, `"constructor"`, `"memory.not_found"`} {
				f.say(refusal(`,"causation":"` + f.hear() + `","error":` + id))
			}
		}, " 418 without a fix\nmoon.full 418 without a fix\nconstructor 418 without a fix\nmemory.not_found 418 with a fix"},
		"gives a reason for hanging up": {[]string{long, "2"}, func(f *fake) {
			f.greet()
			f.say(reply(f.hear(), "1") + refusal(`,"error":"kernel.stopping"`))
		}, "1\nkernel.stopping 418 with a fix"},
		"refuses the login": {[]string{long, "1"}, func(f *fake) { f.say(refusal(`,"error":"auth.busy"`)) }, "auth.busy 418 with a fix"},
		"wants a key": {[]string{long, "1"}, func(f *fake) {
			f.say(strings.Replace(prologue, `"none"`, `"signature","challenge":"AA=="`, 1))
			f.hear()
		}, "auth.no_identity 422 with a fix"},
		"has other syscalls": {[]string{long, "1", "check"}, func(f *fake) {
			f.greet()
			f.say(strings.Replace(reply(f.hear(), "1"), `{"payload":1}`, `{"syscalls":[],"schemas":"beef"}`, 1))
			f.say(reply(f.hear(), "1"))
		}, "warned\n1"},
		"has the same": {[]string{long, "1", "check"}, func(f *fake) {
			f.greet()
			f.say(strings.Replace(reply(f.hear(), "1"), `{"payload":1}`, `{"syscalls":[],"schemas":"cafe"}`, 1))
			f.say(reply(f.hear(), "1"))
		}, "1"},
		"ends a subscription": {[]string{long, "0", "events"}, func(f *fake) {
			f.greet()
			f.say(`{"kind":"event","type":"A.B","data":1}` + "\n" + strings.Replace(strings.Replace(refusal(`,"error":"kernel.stopping"`),
				`"kind":"error"`, `"kind":"event"`, 1), "Syscall.Ping", "Ipc.Unsubscribed", 1))
			f.hear()
		}, "A.B 1\nkernel.stopping 418 with a fix"},
		"ends while the client waits for events": {[]string{long, "0", "events"}, func(f *fake) {
			f.greet()
			f.say(`{"kind":"event","type":"A.B","data":1}` + "\n")
		}, "A.B 1"},
	} {
		for _, r := range runners() {
			t.Run(name+"/"+r.language, func(t *testing.T) {
				t.Parallel()
				p := r.project(t, written(t, r.language, sdk.Kernel{Schemas: "cafe", Syscalls: []schema.DescribeOutput{
					schema.SyscallPing.Describe(schema.OsMessage),
				}}))
				socket := listen(t, tt.kernel)
				same(t, p.run("", "say", append([]string{socket}, tt.args...)...), tt.want)
			})
		}
	}
}

// listen serves one connection to a socket with kernel, and returns the socket's path.
func listen(t *testing.T, kernel func(f *fake)) string {
	t.Helper()
	path := filepath.Join(testkit.Dir(t), "fake.sock") // a name that pwos does not use
	listener, err := net.Listen("unix", path)
	testkit.Must(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		lines := bufio.NewScanner(conn)
		kernel(&fake{Conn: conn, lines: lines})
	}()
	t.Cleanup(func() {
		testkit.Must(t, listener.Close())
		<-ended
	})
	return path
}

// TestNoKernel: if no kernel listens, the error is daemon.not_running.
func TestNoKernel(t *testing.T) {
	t.Parallel()
	for _, r := range runners() {
		t.Run(r.language, func(t *testing.T) {
			t.Parallel()
			p := r.project(t, written(t, r.language, sdk.Kernel{}))
			for _, path := range []string{filepath.Join(p.dir, "none"), filepath.Join(p.dir, p.file), ""} {
				same(t, p.run(p.dir, "say", path, "60000", "1"), "daemon.not_running 503 with a fix")
			}
		})
	}
}
