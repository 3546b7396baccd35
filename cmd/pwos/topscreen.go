package main

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// screen is what top shows. The process that is chosen is known by its PID: rows come and go.
type screen struct {
	app    *app
	client *client.Client

	tick     int64
	metrics  schema.AuditMetricsOutput
	tree     []process
	tokens   map[int64]schema.Value // of the rows that were shown at the last look
	chosen   int64
	first    int // row that is drawn first
	rows     int // that there is room for
	asking   key // K or R while its confirmation is due, else 0
	said     string
	saidLoud bool
	at       time.Time
}

// look asks the kernel how things stand.
func (s *screen) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usualTimeout, errTimeout)
	defer cancel()
	clock, err := invokeAs(ctx, s.client, schema.ClockGet, &schema.ClockGetInput{})
	if err != nil {
		return err
	}
	if s.metrics, err = invokeAs(ctx, s.client, schema.AuditMetrics, &schema.AuditMetricsInput{}); err != nil {
		return err
	}
	processes, err := listProcesses(ctx, s.client, nil)
	if err != nil {
		return err
	}
	processes = slices.DeleteFunc(processes, func(p process) bool { return p.State == terminated })
	if err := withBudgets(ctx, s.client, processes); err != nil {
		return err
	}
	s.tick, s.tree, s.at = clock.Tick, treeOf(processes), time.Now()
	s.choose(0)
	s.tokens = make(map[int64]schema.Value)
	for _, p := range s.visible() {
		token, err := p.token(ctx, s.client)
		if err != nil {
			return err
		}
		s.tokens[p.PID] = token
	}
	return nil
}

// choose moves the choice by so many rows, and sees to it that it can be seen. Where the chosen one is gone, the one in its
// place is.
func (s *screen) choose(by int) {
	if s.rows == 0 { // not drawn yet
		s.rows = 20
	}
	if len(s.tree) == 0 {
		s.chosen, s.first = 0, 0
		return
	}
	i := slices.IndexFunc(s.tree, func(p process) bool { return p.PID == s.chosen })
	if i < 0 {
		i = s.first
	}
	i = min(max(i+by, 0), len(s.tree)-1)
	s.chosen = s.tree[i].PID
	s.first = min(max(s.first, i-s.rows+1), i)
}

// visible returns the processes that there is room for.
func (s *screen) visible() []process {
	first := min(s.first, len(s.tree))
	return s.tree[first:min(first+s.rows, len(s.tree))]
}

// press does what a key asks for.
func (s *screen) press(ctx context.Context, k key) error {
	if ask := s.asking; ask != 0 {
		s.asking = 0
		if k != 'y' && k != 'Y' {
			s.say("nothing was done")
			return nil
		}
		return s.act(ctx, ask)
	}
	s.said = ""
	switch k {
	case keyUp, 'k':
		s.choose(-1)
		return s.look(ctx)
	case keyDown, 'j':
		s.choose(1)
		return s.look(ctx)
	case 'K', 'R':
		if s.chosen != 0 {
			s.asking = k
		}
	}
	return nil
}

// act kills the chosen process, or takes its grant away. That the kernel refuses is shown and not the end.
func (s *screen) act(ctx context.Context, what key) error {
	ctx, cancel := context.WithTimeoutCause(ctx, usualTimeout, errTimeout)
	defer cancel()
	pid, did := s.chosen, "killed"
	var err error
	if what == 'K' {
		s.say(fmt.Sprintf("killing pid %d ...", pid))
		if err := s.draw(); err != nil {
			return err
		}
		reason := "killed from top"
		_, err = invoke(ctx, s.client, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: pid, Reason: &reason})
	} else {
		did = "took the grant away from"
		_, err = invoke(ctx, s.client, schema.CapabilityRevoke.Type, &schema.RevokeInput{PID: pid})
	}
	if client.Answered(err) != nil {
		s.said, s.saidLoud = escaped(err.Error()), true
	} else if err != nil {
		return err
	} else {
		s.say(fmt.Sprintf("%s pid %d", did, pid))
	}
	return s.look(ctx)
}

func (s *screen) say(text string) { s.said, s.saidLoud = text, false }

// draw writes the whole screen, in one piece so that nothing flickers.
func (s *screen) draw() error {
	width, height := s.size()
	s.rows = max(height-5, 1)
	s.choose(0)
	var b bytes.Buffer
	b.WriteString("\x1b[H")
	for i, line := range s.lines(width, height) {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + "\x1b[K")
	}
	b.WriteString("\x1b[J")
	if _, err := s.app.stdout.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write screen: %w", err)
	}
	return nil
}
