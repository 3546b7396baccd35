package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/cmd/pwos/internal/panel"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// questions shows the questions of an agent and of its descendants at the terminal that the agent uses, and gives a person's answers.
type questions struct {
	app     *app
	client  *client.Client
	pid     int64
	panel   screen
	answers chan panel.Answer
	news    chan schema.ApprovalState
	ours    map[int64]bool // processes, whether they are the agent or a descendant
	// describe asks the kernel for a process.
	describe func(ctx context.Context, pid int64) (schema.Descriptor, error)
}

// screen is where questions are shown.
type screen interface {
	Ask(*panel.Question)
	// End takes a question away.
	End(id, why string)
	// Decided shows the outcome of an answer.
	Decided(id, how string, err error)
	// Tick is told that a second has passed, while Busy.
	Tick()
	Busy() bool
}

// describeTime bounds the wait for what the kernel says of a process that asks, since nothing else happens meanwhile.
const describeTime = 2 * time.Second

// newPanel returns the panel of a terminal; nil if the configuration has switched it off. Answers come from the channel.
func (t *terminal) newPanel() (*panel.Panel, chan panel.Answer) {
	chord, err := attention()
	if err != nil { // the kernel has started with it
		t.app.note("no questions are shown at this terminal: %v", err)
	}
	if chord.key == 0 {
		return nil, nil
	}
	answers := make(chan panel.Answer, 1)
	var notify func(string) string
	if chord.notify {
		t.notifier = newNotifier(os.Getenv)
		notify = t.notifier.notify
	}
	size, err := unix.IoctlGetWinsize(int(t.own.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		size = &unix.Winsize{Col: 80, Row: 24}
	}
	return panel.New(panel.Settings{
		Out: t.own, Chord: chord.key, Name: chord.name, ASCII: asciiTerminal(os.Getenv), Style: t.app.Style, Notify: notify,
		May: t.foreground, Now: time.Now,
		Decide: func(a panel.Answer) { answers <- a }, // the next one comes after the outcome of this one
	}, int(size.Col), int(size.Row)), answers
}

// chord is the key after which keys are an answer; key is 0 if no question is shown at the terminal.
type chord struct {
	key    byte
	name   string
	notify bool // a new question notifies
}

// attention returns the chord of the configuration.
func attention() (c chord, err error) {
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil {
		return c, err
	}
	c.key, c.name = cfg.Terminal.Chord()
	c.notify = cfg.Terminal.Notify == config.On
	return c, nil
}

// asciiTerminal reports whether the terminal's locale has no other characters.
func asciiTerminal(getenv func(string) string) bool {
	locale := strings.ToLower(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return getenv("TERM") == "dumb" || !strings.Contains(locale, "utf-8") && !strings.Contains(locale, "utf8")
}

// newQuestions returns the questions of an agent, without those that it asks.
func newQuestions(pid int64, p screen, answers chan panel.Answer) *questions {
	return &questions{pid: pid, panel: p, answers: answers, news: make(chan schema.ApprovalState), ours: map[int64]bool{pid: true, 0: false}}
}

// showQuestions shows the questions of an agent until the returned function is called, at a terminal that has a panel.
func (a *app) showQuestions(ctx context.Context, c *client.Client, pid int64, own *ownStdio) (stop func()) {
	if own == nil || own.terminal == nil || own.terminal.panel == nil {
		return func() {}
	}
	return a.showQuestionsOn(ctx, c, newQuestions(pid, own.terminal.panel, own.terminal.answers))
}

// showQuestionsOn shows the questions of an agent until the returned function is called.
func (a *app) showQuestionsOn(ctx context.Context, c *client.Client, q *questions) (stop func()) {
	q.app, q.client = a, c
	q.describe = func(ctx context.Context, pid int64) (schema.Descriptor, error) { return cli.Describe(ctx, c, pid) }
	ctx, cancel := context.WithCancel(ctx)
	var workers sync.WaitGroup
	var err error
	workers.Go(func() { err = q.listen(ctx) })
	workers.Go(func() { q.serve(ctx) })
	return func() {
		cancel()
		workers.Wait()
		if client.Answered(err) != nil {
			a.note("questions of this agent were not shown here: %v", err)
		}
	}
}

// listen passes on the questions and answers that the kernel tells of.
func (q *questions) listen(ctx context.Context) error {
	options, err := q.app.Options()
	if err != nil {
		return err
	}
	c, err := client.Dial(ctx, options)
	if err != nil {
		return err
	}
	err = cli.SubscribeOn(ctx, c, schema.ApprovalSubscribe, new(schema.ApprovalSubscribeInput), func(_ string, _ schema.Message, s schema.ApprovalState) error {
		select {
		case q.news <- s:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	_ = c.Close() // it was read to its end, or ctx has ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve handles what the kernel tells, answers, and time.
func (q *questions) serve(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	passes := true
	for {
		if busy := q.panel.Busy(); busy != passes { // while nothing is shown, no time passes; news do not begin a second again
			if passes = busy; busy {
				second.Reset(time.Second)
			} else {
				second.Stop()
			}
		}
		select {
		case s := <-q.news:
			q.take(ctx, &s)
		case answer := <-q.answers:
			q.decide(ctx, answer)
		case <-second.C:
			q.panel.Tick()
		case <-ctx.Done():
			return
		}
	}
}

// take shows a question of the agent, or takes it away.
func (q *questions) take(ctx context.Context, s *schema.ApprovalState) {
	if s.State != schema.ApprovalWaiting {
		q.panel.End(s.ID, "it is "+s.State)
		return
	}
	looking, cancel := context.WithTimeoutCause(ctx, describeTime, cli.ErrTimeout)
	defer cancel()
	if ours, _ := q.isOurs(looking, s.PID); ours || s.PID == 0 && q.isNamed(looking, s.Agent) {
		q.panel.Ask(&panel.Question{ID: s.ID, Digest: s.Digest, Asked: time.UnixMilli(s.Asked), Expires: time.UnixMilli(s.Expires), View: view.QuestionOf(s)})
	}
}

// isOurs reports whether a process is the agent or one of its descendants, and whether that is known. It is not if the process is forgotten,
// or the kernel does not answer: then the next question looks again.
func (q *questions) isOurs(ctx context.Context, pid int64) (ours, known bool) {
	if ours, known = q.ours[pid]; known {
		return ours, true
	}
	d, err := q.describe(ctx, pid)
	if err != nil {
		return false, false
	}
	q.ours[pid] = false // no process is its own ancestor
	if ours, known = q.isOurs(ctx, d.ParentPID); known {
		q.ours[pid] = ours
	} else {
		delete(q.ours, pid)
	}
	return ours, known
}

// isNamed reports whether the kernel asks about the agent.
func (q *questions) isNamed(ctx context.Context, name string) bool {
	d, err := q.describe(ctx, q.pid)
	return err == nil && d.AgentID == name
}

// decide gives a person's answer to the question that was shown: its id and its digest.
func (q *questions) decide(ctx context.Context, answer panel.Answer) {
	in := &schema.ApprovalDecideInput{ID: answer.Question.ID, Digest: &answer.Question.Digest, Decision: schema.Refuse}
	how := "refused"
	if answer.Why != "" {
		in.Why = &answer.Why
	}
	switch seconds := int64(answer.For / time.Second); {
	case answer.Approve && seconds > 0:
		in.Decision, in.ForSeconds, how = schema.Approve, &seconds, "allowed for an hour"
	case answer.Approve:
		in.Decision, how = schema.Approve, "allowed once"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, cli.UsualTimeout, cli.ErrTimeout)
	defer cancel()
	_, err := cli.InvokeAs(ctx, q.client, schema.ApprovalDecide, in)
	switch {
	case errors.Is(err, fault.ApprovalOver), errors.Is(err, fault.ApprovalOther), errors.Is(err, fault.ApprovalUnknown):
		q.panel.End(answer.Question.ID, "it is over") // and with it the question
		err = errors.New(fault.Of(err).Text() + ": nothing was decided")
	}
	q.panel.Decided(answer.Question.ID, how, err)
}
