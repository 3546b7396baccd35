package main_test

import (
	"context"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// served calls do with the questions of an agent at a terminal of its own. describe stands for the kernel.
func served(t *testing.T, describe func(ctx context.Context, pid int64) (schema.Descriptor, error), do func(p *panel.Panel, news chan<- schema.ApprovalState)) {
	synctest.Test(t, func(t *testing.T) {
		p := panel.New(panel.Settings{
			Out: io.Discard, Chord: 0x1d, Style: func(_ view.Look, text string) string { return text }, May: func() bool { return true }, Now: time.Now, Decide: func(panel.Answer) {},
		}, 80, 24)
		serve, news := pwos.Questions(p, describe)
		ctx, cancel := context.WithCancel(t.Context())
		var worker sync.WaitGroup
		worker.Go(func() { serve(ctx) })
		do(p, news)
		cancel()
		worker.Wait()
	})
}

// waiting is a question of a process.
func waiting(id string, pid int64) schema.ApprovalState {
	return schema.ApprovalState{State: schema.ApprovalWaiting, ApprovalRequestedInput: schema.ApprovalRequestedInput{
		ID: id, PID: pid, Agent: "a", Type: "Memory.Set", Data: schema.Value(`{"key":"k","value":1}`), Asked: time.Now().UnixMilli(), Expires: time.Now().Add(5 * time.Second).UnixMilli(),
	}}
}

// TestQuestionsExpire: time passes for what is shown, whatever the kernel tells of other agents meanwhile.
func TestQuestionsExpire(t *testing.T) {
	t.Parallel()
	served(t, nil, func(p *panel.Panel, news chan<- schema.ApprovalState) {
		news <- waiting("q-1", 1)
		synctest.Wait()
		if !p.Busy() {
			t.Error("the question is not shown")
		}
		for range 60 {
			time.Sleep(500 * time.Millisecond)
			news <- schema.ApprovalState{State: schema.ApprovalUsed, ApprovalRequestedInput: schema.ApprovalRequestedInput{ID: "q-9"}}
		}
		if synctest.Wait(); p.Busy() {
			t.Error("a question that has expired is shown still")
		}
	})
}

// TestQuestionsOfDescendants: a kernel that does not answer for a while, or fails, is asked again for the next question.
func TestQuestionsOfDescendants(t *testing.T) {
	t.Parallel()
	mute := true
	describe := func(ctx context.Context, pid int64) (schema.Descriptor, error) {
		switch {
		case pid == 4:
			return schema.Descriptor{ParentPID: 7}, nil
		case pid == 7:
			return schema.Descriptor{ParentPID: 0}, nil
		case mute && pid == 2:
			<-ctx.Done()
			return schema.Descriptor{}, ctx.Err()
		}
		return schema.Descriptor{ParentPID: pid - 1}, nil
	}
	served(t, describe, func(p *panel.Panel, news chan<- schema.ApprovalState) {
		news <- waiting("q-1", 3)
		news <- waiting("q-2", 4) // it is taken when the look at the one before has ended
		if synctest.Wait(); p.Busy() {
			t.Error("a question is shown that is not known to be the agent's")
		}
		mute = false
		news <- waiting("q-3", 3)
		if synctest.Wait(); !p.Busy() {
			t.Error("the question of a descendant is not shown")
		}
	})
}
