package trees

import (
	"context"
	"fmt"
	"time"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// recordTime bounds the recording of a step. What could not be recorded is tried again with the next one.
const recordTime = 10 * time.Second

// later notes a step to be journaled by record.
func (t *Trees) later(s *schema.StepState) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.unrecorded = append(t.unrecorded, *s)
}

// record journals the steps that are not journaled yet, in their order.
func (t *Trees) record() error {
	t.recording.Lock()
	defer t.recording.Unlock()
	for {
		t.mu.Lock()
		if len(t.unrecorded) == 0 {
			t.mu.Unlock()
			return t.askAll()
		}
		s := t.unrecorded[0]
		t.mu.Unlock()
		err := t.journal(&s)
		if err != nil && fault.Of(err).Kind == fault.InvalidInput { // a bug: it would never be taken, and hold up all others
			t.log.Error("a step is not recorded", "agent", s.Agent, "step", s.Step, "error", err)
			err = nil
		}
		if err != nil {
			t.log.Warn("a step is not journaled yet", "agent", s.Agent, "step", s.Step, "error", err)
			return fmt.Errorf("record step %s:%d: %w", s.Agent, s.Step, err)
		}
		t.mu.Lock()
		t.unrecorded = t.unrecorded[1:]
		t.mu.Unlock()
	}
}

func (t *Trees) journal(s *schema.StepState) error {
	ctx, cancel := context.WithTimeout(context.Background(), recordTime)
	defer cancel()
	_, err := t.kernel.Do(ctx, kernel.Own{Caller: kernel.Caller{Kernel: true}, Request: schema.StepEnded.With(s)})
	return err
}

// askAll asks the questions that were not asked yet.
func (t *Trees) askAll() error {
	for {
		t.mu.Lock()
		if len(t.unasked) == 0 {
			t.mu.Unlock()
			return nil
		}
		q := t.unasked[0]
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), recordTime)
		err := t.ask(ctx, &q)
		cancel()
		if err != nil {
			t.log.Warn("a question is not asked yet", "agent", q.Agent, "step", q.Step, "error", err)
			return fmt.Errorf("ask about step %s:%d: %w", q.Agent, q.Step, err)
		}
		t.mu.Lock()
		t.unasked = t.unasked[1:]
		t.mu.Unlock()
	}
}
