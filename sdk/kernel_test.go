package sdk_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/sdk"
)

// inEach runs a test for each language, with a kernel and its client in that language.
func inEach(t *testing.T, run func(t *testing.T, p *project, runtime string, c *client.Client)) {
	t.Helper()
	for _, r := range runners() {
		t.Run(r.language, func(t *testing.T) {
			t.Parallel()
			runtime, c := newKernel(t)
			run(t, r.project(t, written(t, r.language, described(t, c))), runtime, c)
		})
	}
}

// TestMethods: each syscall has a method that calls it.
func TestMethods(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, p *project, runtime string, c *client.Client) {
		var methods []string
		var want strings.Builder
		for _, s := range described(t, c).Syscalls {
			name := methodOf(t, p.language, s)
			if strings.Contains(string(s.Input), `"properties":{}`) {
				continue // it takes no data, and so refuses none
			}
			methods = append(methods, name+"="+s.Name)
			fmt.Fprintln(&want, s.Name)
		}
		same(t, p.run(runtime, "methods", methods...), want.String())
	})
}

// aMethod matches the beginning of a method in either language.
var aMethod = regexp.MustCompile(`(?m)^(?:    def |  )(\w+)\(`)

// methodOf returns the name of a syscall's method.
func methodOf(t testing.TB, language string, s schema.DescribeOutput) string {
	t.Helper()
	source := written(t, language, sdk.Kernel{Syscalls: []schema.DescribeOutput{s}})
	_, source, _ = strings.Cut(source, "The syscalls, by their names.")
	m := aMethod.FindStringSubmatch(source)
	if m == nil {
		t.Fatalf("%s has no method", s.Name)
	}
	return m[1]
}

// TestCalls: values come back unchanged, refusals have their id and fix, and no call gets another's answer.
func TestCalls(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, p *project, runtime string, _ *client.Client) {
		unsendable := "true\ntrue\ntrue\ntrue" // three values, and unknown metadata
		if p.language == "typescript" {
			unsendable = "true\ntrue\nwire.invalid_json 400 True Send one JSON object a line: UTF-8, no duplicate names, at most 64 levels deep.\ntrue"
		}
		same(t, p.run(runtime, "calls"), strings.Repeat("true\n", 12)+`wire.too_long 413 True Put large members into a blob and send a reference, or raise limits.line_bytes.
7
memory.not_found 404 True Memory.List shows the keys.
memory.bad_key 422 True Use segments separated by slashes, at most 1024 bytes.
wire.unknown_syscall 404 True Syscall.List names what there is.
wire.schema 422 True Send kind, type, data and metadata as the message names them.
["bob"]
true
idempotency.other_body 409 True Take a new key.
[[{"to":"bob"},"c"]]
true
true
`+unsendable+`
daemon.hung_up 503 True See kernel.log in the runtime directory.`)
	})
}

// TestEvents: handlers get their events in order, and calls of a provided syscall are answered, whatever their outcome.
func TestEvents(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, p *project, runtime string, _ *client.Client) {
		same(t, p.run(runtime, "events", "Parrot.Say"), `Ipc.MessageDelivered first
Ipc.MessageDelivered ü
Ipc.MessageDelivered last
["hello",0]
provider.failed
provider.failed
provider.failed
provider.bad_answer
wire.invalid_input
"inside"
provider.waits_for_itself
Says it again.
the loop has ended
provider.away`)
	})
}

// TestFingerprint: schemas in Syscall.List is the digest of the answers of Syscall.Describe about the listed syscalls,
// also for an agent that may call fewer.
func TestFingerprint(t *testing.T) {
	t.Parallel()
	_, c := newKernel(t)
	k := described(t, c)
	digest := sha256.New()
	for _, s := range k.Syscalls {
		digest.Write(append(s.AppendJSON(nil), '\n'))
	}
	if got := hex.EncodeToString(digest.Sum(nil)); got != k.Schemas {
		t.Errorf("the digest is %s, and that of Syscall.List %s", got, k.Schemas)
	}
	name := "bob"
	_, err := client.Call(testkit.Context(t), c, schema.ProcessAttach, &schema.AttachInput{AgentID: name})
	testkit.Must(t, err)
	if less := described(t, c); less.Schemas != k.Schemas || len(less.Syscalls) >= len(k.Syscalls) {
		t.Errorf("of %d syscalls, an agent may call %d, made from %s instead of %s", len(k.Syscalls), len(less.Syscalls), less.Schemas, k.Schemas)
	}
}
