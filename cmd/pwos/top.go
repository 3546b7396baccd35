package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

func newTop(a *app) *cobra.Command {
	var every time.Duration
	var at kernelChoice
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
--kernel NAME shows one. One that does not answer is named, with the reason. K and R act on
the kernel that pwos connects to only.

It needs a terminal; "pwos ps" is for pipes. Each refresh makes a few calls, each with
an entry in the journal.`,
		Example: `  pwos top
  pwos top --all
  pwos top --every 5s`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 100*time.Millisecond {
				return usage(cmd, fmt.Errorf("--every must be at least 100ms, not %v", every))
			}
			if !a.stdinTerminal() || !a.stdoutTerminal() {
				return usage(cmd, errors.New(`top needs a terminal for stdin and stdout; "pwos ps" lists the processes once, "pwos ps --json" for programs`))
			}
			return a.top(cmd.Context(), every, at)
		},
	}
	cmd.Flags().DurationVar(&every, "every", time.Second, "time between two refreshes")
	cmd.Flags().BoolVar(&at.all, "all", false, "name the kernels of the cluster, and let Tab choose")
	at.flag(cmd)
	return cmd
}

// top owns the terminal until the user quits, ctx ends, or the kernel stops. It always restores the terminal.
func (a *app) top(ctx context.Context, every time.Duration, at kernelChoice) error {
	ctx, stop := untilHangup(ctx)
	defer stop()
	return a.withKernel(ctx, 0, func(ctx context.Context, c *client.Client) (err error) {
		m := &topModel{app: a, sources: []source{{client: c}}, ctx: ctx, every: every}
		var own string
		var others []string
		if at.all || at.name != "" {
			if own, others, err = kernelsOf(ctx, c); err != nil {
				return err
			}
		}
		if at.name != "" && at.name != own {
			m.sources, others = nil, []string{at.name}
		} else {
			m.sources[0].name = own
			if at.name != "" {
				others = nil
			}
		}
		for _, name := range others {
			other, err := a.dialWith(ctx, dialing{kernel: name})
			if err != nil {
				return err
			}
			defer closeInto(&err, other)
			m.sources = append(m.sources, source{name: name, client: other})
		}
		m.client = m.sources[0].client
		first := m.look(m.Top) // an error of the first look is printed on the usual screen
		if first.err != nil {
			return first.err
		}
		m.take(first)
		_, err = tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(a.stdin), tea.WithOutput(a.stdout), tea.WithoutSignalHandler()).Run()
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

// source is a kernel that top shows.
type source struct {
	name    string // "": there is only one
	client  *client.Client
	trouble string // why it did not answer at the latest look
}

// next shows the next kernel.
func (m *topModel) next() tea.Cmd {
	if len(m.sources) < 2 {
		return nil
	}
	m.shown = (m.shown + 1) % len(m.sources)
	m.client = m.sources[m.shown].client
	m.Show()
	return m.choose(0)
}

// kernels is the line that names the kernels, the shown one in brackets.
func (m *topModel) kernels() string {
	if len(m.sources) < 2 && m.sources[0].name == "" {
		return ""
	}
	line := "kernels:"
	for i, s := range m.sources {
		name := view.Escaped(s.name)
		if i == m.shown {
			name = "[" + name + "]"
		}
		if s.trouble != "" {
			name += " (" + view.Escaped(s.trouble) + ")"
		}
		line += " " + name
	}
	return line
}

// topModel is the state of top. Calls to the kernel run as concurrent commands, one at a time.
type topModel struct {
	view.Top

	app     *app
	sources []source
	shown   int            // index of the kernel that is shown
	client  *client.Client // of that
	ctx     context.Context
	every   time.Duration
	width   int
	height  int
	err     error // that ended it
}

// look is the kernel's state at a time, or why it cannot be read.
type look struct {
	at        time.Time
	tick      int64
	metrics   schema.AuditMetricsOutput
	processes []view.Process
	tokens    map[int64]schema.Value
	said      string // the outcome of an action; "": there was none
	loud      bool   // which failed
	timed     bool   // the timer asked for it, and must be set again
	err       error
	of        int    // index of the kernel
	trouble   string // why another kernel than the own one did not answer
}

// due says that it is time for another look.
type due struct{}

// Init implements tea.Model.
func (m *topModel) Init() tea.Cmd { return m.wait() }

// wait asks for another look after a pause.
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
		if msg.of == m.shown { // else another kernel was chosen meanwhile
			m.take(msg)
		}
		if msg.timed {
			return m, m.wait()
		}
	case tea.KeyPressMsg:
		return m, m.press(msg.String())
	}
	return m, nil
}

// take shows a new look.
func (m *topModel) take(l look) {
	m.sources[m.shown].trouble = l.trouble
	m.Kernels = m.kernels()
	m.Add(l.at, l.tick, &l.metrics)
	m.Processes, m.Tokens = l.processes, l.tokens
	if l.said != "" {
		m.Said, m.Loud = l.said, l.loud
	}
	m.Choose(0)
}

// View implements tea.Model.
func (m *topModel) View() tea.View {
	lines := m.Lines(cmp.Or(m.width, 80), cmp.Or(m.height, 24), m.app.style)
	return tea.View{Content: strings.Join(lines, "\n"), AltScreen: true}
}

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
			l := now.act(ask, now.Top)
			l.of = now.shown
			return l
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
		if m.Chosen != 0 {
			m.Asking = rune(key[0])
		}
	}
	return nil
}

// choose moves the choice, and reads the state of the rows that come into view.
func (m *topModel) choose(by int) tea.Cmd {
	m.Choose(by)
	looks := m.looker()
	return func() tea.Msg { return looks() }
}

// looker returns a function that looks at the shown kernel, on a copy of what it needs. Of another kernel than the first one an
// error is shown; that of the first one ends top.
func (m *topModel) looker() func() look {
	now := *m
	return func() look {
		l := now.look(now.Top)
		if l.err != nil && now.sources[now.shown].name != "" && client.Answered(l.err) != nil {
			l = look{at: time.Now(), trouble: l.err.Error()}
		}
		l.of = now.shown
		return l
	}
}

// act kills the chosen process, or revokes its grant. It shows a refusal.
func (m *topModel) act(what rune, shown view.Top) look {
	pid := shown.Chosen
	ctx, cancel := context.WithTimeoutCause(m.ctx, usualTimeout, errTimeout)
	defer cancel()
	said := fmt.Sprintf("killed pid %d", pid)
	var err error
	if what == 'K' {
		reason := "killed from top"
		_, err = invoke(ctx, m.client, schema.SyscallTerminate.Type, &schema.TerminateInput{TargetPID: pid, Reason: &reason})
	} else {
		said = fmt.Sprintf("revoked the grant of pid %d", pid)
		_, err = invoke(ctx, m.client, schema.CapabilityRevoke.Type, &schema.RevokeInput{PID: pid})
	}
	refused := client.Answered(err) != nil
	if refused {
		said = view.Escaped(err.Error())
	} else if err != nil {
		return look{err: err}
	}
	l := m.look(shown)
	l.said, l.loud = said, refused
	return l
}

// look asks the kernel for its state. Quotas are asked for the rows that fit the screen.
func (m *topModel) look(shown view.Top) (l look) {
	ctx, cancel := context.WithTimeoutCause(m.ctx, usualTimeout, errTimeout)
	defer cancel()
	l.at = time.Now()
	clock, err := invokeAs(ctx, m.client, schema.ClockGet, &schema.ClockGetInput{})
	if err != nil {
		return look{err: err}
	}
	l.tick = clock.Tick
	if l.metrics, err = invokeAs(ctx, m.client, schema.AuditMetrics, &schema.AuditMetricsInput{}); err != nil {
		return look{err: err}
	}
	processes, err := listProcesses(ctx, m.client, nil)
	if err != nil {
		return look{err: err}
	}
	processes = slices.DeleteFunc(processes, func(p view.Process) bool { return p.State == view.Terminated })
	if err := withBudgets(ctx, m.client, processes); err != nil {
		return look{err: err}
	}
	l.processes, l.tokens = view.Tree(processes), make(map[int64]schema.Value)
	shown.Processes = l.processes
	shown.Choose(0)
	for _, p := range shown.Visible() {
		token, err := tokenOf(ctx, m.client, &p)
		if err != nil {
			return look{err: err}
		}
		l.tokens[p.PID] = token
	}
	return l
}
