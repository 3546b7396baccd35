package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// psFlags are the flags of `pwos ps`.
type psFlags struct {
	state string
	all   bool
	wide  bool
}

// terminated is the state of processes that have ended (PROTOCOL 6).
const terminated = "TERMINATED"

func newPs(a *app) *cobra.Command {
	var f psFlags
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "list the processes, with what they hold",
		Long: `ps lists the processes that have not ended, children below their parents, with the
tick of their birth, what each holds of its quotas (held/limit), what it has left of its
budget, and for agents with a program how often that was started again, and its command. Where a terminal has no
room for all of it, priority and birth tick are left out, unless --wide is given.

Where stdout is no terminal, each process is a line of JSON: what Process.List says
of it, and its quotas as they are now. No processes: nothing is printed.`,
		Example: `  pwos ps
  pwos ps --all
  pwos ps --wide
  pwos ps --state BLOCKED --json`,
		Args: arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if states := []string{"CREATED", "READY", "RUNNING", "BLOCKED", terminated}; f.state != "" && !slices.Contains(states, strings.ToUpper(f.state)) {
				return usage(cmd, fmt.Errorf("--state is one of %s, not %q", strings.Join(states, ", "), f.state))
			}
			return a.ps(cmd.Context(), f)
		},
	}
	cmd.Flags().StringVar(&f.state, "state", "", "only processes in this state, such as READY or TERMINATED")
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "ended processes too, as far as the kernel remembers them")
	cmd.Flags().BoolVarP(&f.wide, "wide", "w", false, "all columns, however wide the terminal is")
	return cmd
}

func (a *app) ps(ctx context.Context, f psFlags) error {
	return a.withKernel(ctx, usualTimeout, func(ctx context.Context, c *client.Client) error {
		var state *string
		if f.state != "" {
			wanted := strings.ToUpper(f.state)
			state = &wanted
		}
		processes, err := listProcesses(ctx, c, state)
		if err != nil {
			return err
		}
		if state == nil && !f.all {
			processes = slices.DeleteFunc(processes, func(p process) bool { return p.State == terminated })
		}
		if err := withBudgets(ctx, c, processes); err != nil {
			return err
		}
		t := new(table)
		t.header(psHeader()...)
		for _, n := range treeOf(processes) {
			token, err := n.token(ctx, c)
			if err != nil {
				return err
			}
			if a.wantsJSON() {
				line, err := n.line(token)
				if err != nil {
					return err
				}
				if err := a.printLine(line); err != nil {
					return err
				}
				continue
			}
			row, err := n.row(token)
			if err != nil {
				return err
			}
			t.row(row...)
		}
		if len(t.rows) == 0 && !a.wantsJSON() {
			a.say(`no such processes: "pwos run -d -- PROGRAM" starts one, "pwos ps --all" shows those that have ended`)
		}
		if !f.wide {
			t.narrow(a.width(), "priority", "birth tick")
		}
		return t.write(a.stdout)
	})
}

func psHeader() []string {
	return []string{"pid", "agent", "state", "priority", "birth tick", "quotas", "restarts", "command"}
}

// row is a process as ps shows it to people.
func (p *process) row(token schema.Value) ([]string, error) {
	quotas := ""
	if token != nil {
		out, err := answerAs[schema.CapabilityGetOutput](schema.CapabilityGet.Type, token)
		if err != nil {
			return nil, err
		}
		quotas = quotaTexts(&out)
	}
	if left := budgetLeft(p.budget); left != "" {
		quotas = strings.TrimPrefix(quotas+", "+left, ", ")
	}
	restarts := ""
	if p.Restarts != nil {
		restarts = fmt.Sprint(*p.Restarts)
	}
	return []string{
		fmt.Sprint(p.PID), p.indent() + shortened(escaped(p.AgentID), maxName), stateText(&p.Descriptor), p.Priority, fmt.Sprint(p.BirthTick),
		quotas, restarts, commandText(p.Command),
	}, nil
}

// budgetLeft says what is left of a budget.
func budgetLeft(b *schema.BudgetState) string {
	if b == nil {
		return ""
	}
	var texts []string
	for _, l := range linesOf(b) {
		texts = append(texts, fmt.Sprintf("%s %s of %s left", l.kind, l.Left, l.Given))
	}
	return strings.Join(texts, ", ")
}

// stateText is the state, and what there is to know about it.
func stateText(d *schema.Descriptor) string {
	switch {
	case d.BlockedUntilTick != nil:
		return fmt.Sprintf("%s until %d", d.State, *d.BlockedUntilTick)
	case d.State == terminated && d.Exit != nil:
		return d.State + ", " + endWord(d.Exit)
	}
	return d.State
}

// endWord is an end in a word or two.
func endWord(end *schema.Exit) string {
	switch {
	case end.Reason != "exited" && end.Reason != "signalled":
		return escaped(end.Reason)
	case end.Signal != nil:
		return fmt.Sprintf("signal %d", *end.Signal)
	}
	return fmt.Sprintf("exit %d", value(end.Code))
}

// maxName is how much of an agent's name is shown, in characters: a longer one would push what it is, and what all others
// are, out of sight.
const maxName = 40

// commandText is a command as it could be typed, cut off where it is long.
func commandText(command []string) string {
	words := make([]string, len(command))
	for i, word := range command {
		words[i] = quoted(word)
	}
	return shortened(escaped(strings.Join(words, " ")), 60)
}

// shortened is text of at most so many characters.
func shortened(text string, most int) string {
	runes := []rune(text)
	if len(runes) > most {
		runes = append(runes[:most-3], []rune("...")...)
	}
	return string(runes)
}
