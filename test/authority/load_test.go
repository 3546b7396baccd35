package authority_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
)

// callers is the number of connections that make concurrent calls.
const callers = 64

// start boots a kernel for a test with concurrent callers. done shuts it down; it is also called at the end of the test.
func start(t *testing.T, cfg *config) (s *system, done func()) {
	t.Helper()
	s, err := boot(cfg)
	testkit.Must(t, err)
	down := false
	done = func() {
		if down {
			return
		}
		down = true
		if err := s.shutDown(); err != nil {
			t.Errorf("shut down: %v", err)
		}
	}
	t.Cleanup(done)
	return s, done
}

// must makes a call, and fails the test unless the call succeeds.
func (c *client) must(t *testing.T, typ, data string) answer {
	t.Helper()
	a, err := c.ask(request{typ: typ, data: data})
	if err != nil || a.code != 0 {
		t.Fatalf("%s %s: %s, %v", typ, data, a, err)
	}
	return a
}

// spawn makes the operator, whose connection c is, spawn a process.
func (c *client) spawn(t *testing.T, capabilities string) int64 {
	t.Helper()
	a := c.must(t, "Syscall.Spawn", fmt.Sprintf(`{"child_agent_id":"a%d","capabilities":%s}`, c.last, capabilities))
	out, err := read[schema.SpawnOutput]("Syscall.Spawn", a)
	testkit.Must(t, err)
	return out.ChildPID
}

// entry is the entry of a command in the journal.
type entry struct {
	seq     uint64
	pid     int64
	typ     string
	key     string
	input   any
	outcome schema.Outcome
}

// entries returns all commands in the journal in order, including steps, repetitions and refused calls.
func (s *system) entries() (list []entry, err error) {
	r := journal.NewReader(s.disk, journalDir, journal.ReaderOptions{})
	defer func() { err = errors.Join(err, r.Close()) }()
	for {
		record, err := r.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		m, fault := schema.Decode(record.Request, schema.OsMessage)
		if fault != nil {
			return nil, fault
		}
		row, ok := schema.Lookup(m.Type)
		if !ok || row.Kind != schema.KindCommand {
			continue
		}
		e := entry{seq: record.Seq, pid: record.PID, typ: m.Type, key: m.Meta.IdempotencyKey}
		// The record's memory is reused for the next one.
		if e.outcome, fault = schema.DecodeOutcome(append([]byte(nil), record.Outcome...)); fault != nil {
			return nil, fault
		}
		if e.input, fault = row.Input().Decode(append([]byte(nil), m.Data...)); fault != nil {
			return nil, fault
		}
		list = append(list, e)
	}
}
