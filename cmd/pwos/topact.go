package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// press handles a key.
func (m *topModel) press(key string) tea.Cmd {
	if ask := m.Asking; ask != 0 {
		m.Asking = 0
		if key != "y" && key != "Y" {
			m.Say("nothing was done")
			return nil
		}
		if ask == 'K' {
			m.Say(fmt.Sprintf("killing pid %d ...", m.Chosen))
		}
		now := *m
		return func() tea.Msg {
			return now.act(ask, now.Top)
		}
	}
	m.Said = ""
	switch key {
	case "q", "ctrl+c":
		return tea.Quit
	case "up", "k":
		return m.choose(-1)
	case "down", "j":
		return m.choose(1)
	case "tab":
		return m.next()
	case "K", "R":
		switch s := m.sources[m.shown]; {
		case m.Chosen == 0:
		case key == "R" && s.abroad:
			m.Say("grants of " + s.Kernel + ` are revoked there: "pwos cap revoke"`)
		default:
			m.Asking = rune(key[0])
		}
	}
	return nil
}

// choose moves the selection, and reads the state of the rows that scroll into view.
func (m *topModel) choose(by int) tea.Cmd {
	m.Choose(by)
	looks := m.looker()
	return func() tea.Msg { return looks() }
}

// looker returns a function that looks at the shown kernel, on a copy of the state. An answered error of another kernel is shown;
// any other error ends top.
func (m *topModel) looker() func() look {
	now := *m
	return func() look {
		l := now.look(now.Top)
		if l.err != nil && now.sources[now.shown].abroad && client.Answered(l.err) != nil {
			l = look{at: time.Now(), trouble: l.err.Error()}
		}
		l.of = now.shown
		return l
	}
}

// act kills the chosen process, at another kernel through the connected one, or revokes its grant. It shows a refusal.
func (m *topModel) act(what rune, shown view.Top) look {
	pid, s := shown.Chosen, m.sources[m.shown]
	ctx, cancel := context.WithTimeoutCause(m.ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	said := fmt.Sprintf("killed pid %d", pid)
	var err error
	if what == 'K' {
		reason := "killed from top"
		in := &schema.TerminateInput{TargetPID: pid, Reason: &reason}
		if s.abroad {
			in.Kernel = &s.Kernel
		}
		_, err = cli.Invoke(ctx, s.Own, schema.SyscallTerminate.Type, in)
	} else {
		said = fmt.Sprintf("revoked the grant of pid %d", pid)
		_, err = cli.Invoke(ctx, s.Own, schema.CapabilityRevoke.Type, &schema.RevokeInput{PID: pid})
	}
	refused := client.Answered(err) != nil
	if refused {
		said = view.Escaped(err.Error())
	} else if err != nil {
		return look{err: err}
	}
	l := m.looker()()
	l.said, l.loud = said, refused
	return l
}

// look queries the shown kernel. It reads the tokens only of the visible rows.
func (m *topModel) look(shown view.Top) (l look) {
	ctx, cancel := context.WithTimeoutCause(m.ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	l.at = time.Now()
	s := m.sources[m.shown]
	missing := func(err error) bool { return err != nil && (!s.abroad || !errors.Is(err, fault.Forbidden)) } // another kernel may refuse parts
	clock, err := cli.InvokeAs(ctx, s.Client, schema.ClockGet, &schema.ClockGetInput{})
	if missing(err) {
		return look{err: err}
	}
	l.tick = clock.Tick
	if l.metrics, err = cli.InvokeAs(ctx, s.Client, schema.AuditMetrics, &schema.AuditMetricsInput{}); missing(err) {
		return look{err: err}
	}
	processes, err := cli.ListProcesses(ctx, s.Client, nil)
	if err != nil {
		return look{err: err}
	}
	processes = slices.DeleteFunc(processes, func(p view.Process) bool { return p.State == view.Terminated })
	if err := withBudgets(ctx, s.Client, processes); err != nil {
		return look{err: err}
	}
	l.processes, l.tokens = view.Tree(processes), make(map[int64]schema.Value)
	shown.Processes = l.processes
	shown.Choose(0)
	for _, p := range shown.Visible() {
		token, err := tokenOf(ctx, s.Client, &p)
		if missing(err) {
			return look{err: err}
		}
		l.tokens[p.PID] = token
	}
	return l
}
