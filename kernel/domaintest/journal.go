package domaintest

import (
	"bytes"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Journal keeps the part of each applied command that the kernel's journal keeps. The zero value is empty.
type Journal struct{ entries []kernel.Call }

// Apply keeps a command and has a domain apply it, as [Apply] does.
func (j *Journal) Apply(d kernel.Domain, call *kernel.Call, data []byte) {
	if call.Syscall.Kind == schema.KindCommand {
		entry := *call
		entry.Token = nil
		entry.Message.Data = bytes.Clone(call.Message.Data)
		entry.Data = bytes.Clone(data)
		j.entries = append(j.entries, entry)
	}
	Apply(d, call, data)
}

// Replay has a domain apply all kept commands.
func (j *Journal) Replay(t TB, d kernel.Domain) {
	t.Helper()
	for _, entry := range j.entries {
		call := entry
		call.Message.Data = bytes.Clone(entry.Message.Data)
		var err *fault.Fault
		if call.Input, err = call.Syscall.Input().Decode(call.Message.Data); err != nil {
			t.Fatal(err)
		}
		Apply(d, &call, entry.Data)
	}
}

// Check compares a state with its replay in an empty domain, and with the restore of its snapshot
// in another. It overwrites each chunk after it was read.
func (j *Journal) Check(t TB, live, replayed, restored kernel.Domain) {
	t.Helper()
	want := Snapshot(t, live)
	j.Replay(t, replayed)
	if got := Snapshot(t, replayed); !bytes.Equal(got, want) {
		t.Fatalf("replayed\n%s\nlive\n%s", got, want)
	}
	Restore(t, live, restored)
	if got := Snapshot(t, restored); !bytes.Equal(got, want) {
		t.Fatalf("restored\n%s\nlive\n%s", got, want)
	}
}

// Restore restores the state of one domain in another, empty one.
func Restore(t TB, from, to kernel.Domain) {
	t.Helper()
	if err := from.Snapshot()(func(chunk []byte) error {
		mine := bytes.Clone(chunk)
		defer clear(mine)
		return to.Restore(mine)
	}); err != nil {
		t.Fatal(err)
	}
}
