package process_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/kernel/process"
	"github.com/promptware-os/pwos/schema"
)

// TestAdoptionIsReadOnce: the result of an ingest, up to a megabyte, is decoded when it is decided, and not again
// when it is applied.
func TestAdoptionIsReadOnce(t *testing.T) {
	t.Parallel()
	readOnce(t, false)
}

// TestAdoptionIsReadBefore: if it is prepared, neither step decodes it.
func TestAdoptionIsReadBefore(t *testing.T) {
	t.Parallel()
	readOnce(t, true)
}

func readOnce(t *testing.T, prepare bool) {
	t.Helper()
	d := process.New(nil)
	spawnMany(t, d, 1, func(int64) int64 { return 0 })
	data, err := schema.Marshal(&schema.Adoption{
		Identity:    schema.Identity{ContextID: "ctx-1", URI: "os:///d/a", Digest: "x", Proof: "none"},
		FrontMatter: "{}", Content: strings.Repeat("a line\n", 1000),
	})
	testkit.Must(t, err)
	end := &schema.EffectEnd{PID: 1, Type: "Kernel.Ingest", Outcome: schema.AppendOutcome(nil, schema.KindCommand, &schema.Outcome{Data: data})}
	call := &kernel.Call{Request: kernel.Request{Syscall: schema.KernelIngest.End.Syscall, Input: end}, Decision: kernel.Decision{Origin: home}}
	if prepare {
		d.Prepare(call)
		clear(end.Outcome)
	}
	result, err := d.Decide(call)
	if err != nil || !strings.Contains(string(result.Data), `"context_id":"ctx-1"`) {
		t.Fatalf("%s, %v", result.Data, err)
	}
	clear(end.Outcome)
	d.Apply(call)
	d.Publish()
	if is := d.Processes().Adopted(1, home); is == nil || is.URI != "os:///d/a" {
		t.Errorf("adopted %+v", is)
	}
}
