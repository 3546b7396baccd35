package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

func newTop(a *app) *cobra.Command {
	var every time.Duration
	var at cli.KernelChoice
	cmd := &cobra.Command{
		Use:   "top",
		Short: "watch the processes live, kill them or revoke their grants",
		Long: `top shows the processes like ps, refreshed regularly, with the rate of calls
and refusals above them. Keys act on one chosen process:

  up, down, j, k    choose a process
  K                 kill it and its descendants, after confirmation with y
  R                 revoke its grant, after confirmation
  Tab               show the next kernel of the cluster (--all)
  q, Ctrl-C         quit

--all names the kernels of the cluster in a line above the processes, and shows one at a time;
--kernel NAME shows one. One that is away is marked there, and its reason is shown in place of its
processes. At another kernel, K does what "pwos kill 12@beta" does, and R does nothing.

It needs a terminal; "pwos ps" is for pipes. Each refresh makes a few calls, each with
an entry in the journal.`,
		Example: `  pwos top
  pwos top --all
  pwos top --every 5s`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return cli.Usage(cmd, fmt.Errorf("--every must be at least 100ms, not %v", every))
			}
			if !a.StdinTerminal() || !a.StdoutTerminal() {
				return cli.Usage(cmd, errors.New(`top needs a terminal for stdin and stdout; "pwos ps" lists the processes once, "pwos ps --json" for programs`))
			}
			return a.top(cmd.Context(), every, at)
		},
	}
	every = time.Second
	cmd.Flags().Var((*cli.SpanFlag)(&every), "every", "time between two refreshes")
	cmd.Flags().BoolVar(&at.All, "all", false, "name the kernels of the cluster, and let Tab choose")
	at.Flag(a.App, cmd)
	return cmd
}

// top uses the terminal until the user quits, ctx ends, or a call fails. It always restores the terminal.
func (a *app) top(ctx context.Context, every time.Duration, at cli.KernelChoice) error {
	ctx, stop := cli.UntilHangup(ctx)
	defer stop()
	return a.WithKernels(ctx, 0, at, func(ctx context.Context, list []cli.Asked) error {
		m := &topModel{app: a, ctx: ctx, every: every}
		for _, one := range list {
			m.sources = append(m.sources, source{Asked: one, abroad: one.Client != one.Own})
		}
		m.away = make([]bool, len(list))
		m.name()
		first := m.look(m.Top) // an error of the first look is printed before the screen is switched
		if first.err != nil {
			return first.err
		}
		m.take(first)
		_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(a.Stdin), tea.WithOutput(a.Stdout), tea.WithoutSignalHandler()).Run()
		switch {
		case m.err != nil:
			return m.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fmt.Errorf("show processes: %w", err)
		}
		return nil
	})
}

// source is a kernel that top can show.
type source struct {
	cli.Asked

	abroad bool // it is asked through the connected kernel
}

// probeEvery is the interval of queries to kernels that are not shown. Each query is an entry of both records.
const probeEvery = 10 * time.Second

// probed reports for each source whether it did not answer; nil means that a probe is due.
type probed []bool

// probe queries the other kernels that are not shown.
func (m *topModel) probe() tea.Msg {
	ctx, cancel := context.WithTimeoutCause(m.ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	away := make(probed, len(m.sources))
	for i, s := range m.sources {
		if s.abroad && i != m.shown {
			_, err := cli.InvokeAs(ctx, s.Client, schema.ClockGet, &schema.ClockGetInput{})
			away[i] = err != nil && !errors.Is(err, fault.Forbidden)
		}
	}
	return away
}

// next shows the next kernel. It clears the screen's rows first, since a key must not act on a PID of another kernel.
func (m *topModel) next() tea.Cmd {
	if len(m.sources) < 2 {
		return nil
	}
	m.shown = (m.shown + 1) % len(m.sources)
	m.Show()
	m.name()
	m.Kernels = m.kernels()
	return m.choose(0)
}

// name sets the name of the shown kernel; "" for the connected one.
func (m *topModel) name() {
	if m.Other = ""; m.sources[m.shown].abroad {
		m.Other = m.sources[m.shown].Kernel
	}
}

// kernels returns the line with the names of the kernels; the shown one is in brackets.
func (m *topModel) kernels() string {
	if len(m.sources) < 2 && m.sources[0].Kernel == "" {
		return ""
	}
	line := "kernels:"
	for i, s := range m.sources {
		name := view.Escaped(s.Kernel)
		if m.away[i] {
			name += " (away)"
		}
		if i == m.shown {
			name = "[" + name + "]"
		}
		line += " " + name
	}
	if len(m.sources) > 1 {
		line += "   Tab shows the next"
	}
	return line
}

// topModel is the state of top. Each call to the kernel runs in a command, concurrently with Update, on a copy of the state.
type topModel struct {
	view.Top

	app     *app
	sources []source
	away    []bool // the sources that did not answer the latest look or probe
	shown   int    // index of the kernel that is shown
	ctx     context.Context
	every   time.Duration
	width   int
	height  int
	err     error // the error that ended top
}

// look is the kernel's state at one time, or the error of reading it.
type look struct {
	at        time.Time
	tick      int64
	metrics   schema.AuditMetricsOutput
	processes []view.Process
	tokens    map[int64]schema.Value
	said      string // the outcome of an action; "": no action
	loud      bool   // the action failed
	timed     bool   // the timer caused it and must be restarted
	err       error
	of        int    // index of the source
	trouble   string // the error of another kernel than the connected one
}

// due is the message that another look is due.
type due struct{}

// Init implements tea.Model.
func (m *topModel) Init() tea.Cmd {
	if len(m.sources) < 2 {
		return m.wait()
	}
	now := *m
	return tea.Batch(m.wait(), now.probe)
}

// wait returns a command that sends due after the refresh interval.
func (m *topModel) wait() tea.Cmd {
	return tea.Tick(m.every, func(time.Time) tea.Msg { return due{} })
}

// Update implements tea.Model.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		above := 5
		if m.Kernels != "" {
			above++
		}
		m.Rows = max(m.height-above, 1)
		m.Choose(0)
	case due:
		looks := m.looker() // the command runs concurrently with Update
		return m, func() tea.Msg {
			l := looks()
			l.timed = true
			return l
		}
	case look:
		if msg.err != nil {
			m.err = msg.err
			return m, tea.Quit
		}
		if msg.of == m.shown { // else the user has chosen another kernel
			m.take(msg)
		}
		if msg.timed {
			return m, m.wait()
		}
	case probed:
		if msg == nil {
			now := *m
			return m, now.probe
		}
		msg[m.shown] = m.away[m.shown]
		m.away = msg
		m.Kernels = m.kernels()
		return m, tea.Tick(probeEvery, func(time.Time) tea.Msg { return probed(nil) })
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	}
	return m, nil
}

// take shows a new look.
func (m *topModel) take(l look) {
	m.away[m.shown] = l.trouble != ""
	m.Trouble = l.trouble
	m.Kernels = m.kernels()
	if l.trouble == "" {
		m.Add(l.at, l.tick, &l.metrics)
	}
	m.Processes, m.Tokens = l.processes, l.tokens
	if l.said != "" {
		m.Said, m.Loud = l.said, l.loud
	}
	m.Choose(0)
}

// View implements tea.Model.
func (m *topModel) View() tea.View {
	lines := m.Lines(cmp.Or(m.width, 80), cmp.Or(m.height, 24), m.app.Style)
	return tea.View{Content: strings.Join(lines, "\n"), AltScreen: true}
}
