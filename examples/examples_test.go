package examples_test

import (
	"testing"

	"github.com/promptware-os/pwos/examples"
	"github.com/promptware-os/pwos/schema"
)

// The session shows both dialects, and each way in which a frame can end.
func TestSession(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for i, frame := range examples.Session() {
		if frame.Line == "" || frame.Caption == "" {
			t.Errorf("line %d has no frame or no caption", i+1)
		}
		m, fault := schema.Decode([]byte(frame.Line), schema.OsMessage)
		if m.Dialect == schema.OsEvent {
			seen["older dialect"]++
		}
		if fault == nil && m.Kind != schema.KindEvent {
			_, _, fault = m.Request()
		}
		if fault == nil {
			seen[m.Kind.String()]++
			continue
		}
		seen[fault.EventCode()]++
	}
	for _, want := range []string{
		"command", "query", "event", "older dialect",
		"INVALID_JSON", "SCHEMA_VIOLATION", "INVALID_INPUT", "NOT_FOUND",
	} {
		if seen[want] == 0 {
			t.Errorf("the session shows no %s; it shows %v", want, seen)
		}
	}
}

// There is one caption for each frame: one line more or less would shift all later ones.
func TestCaptions(t *testing.T) {
	t.Parallel()
	frames := examples.Session()
	if last := frames[len(frames)-1]; last.Caption != "The connection has survived all of it." {
		t.Errorf("the last frame's caption is %q", last.Caption)
	}
}
