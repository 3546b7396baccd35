package main

import (
	"context"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// notifier tells people, who may look elsewhere, of a new question: it rings the bell and notifies the desktop, by the terminal where that
// is known to do it, else by notify-send.
type notifier struct {
	getenv  func(string) string
	find    func(program string) (path string, err error)
	run     func(ctx context.Context, path string, args ...string)
	workers sync.WaitGroup
	over    context.Context // of what is run
	cancel  context.CancelFunc
}

func newNotifier(getenv func(string) string) *notifier {
	over, cancel := context.WithCancel(context.Background())
	return &notifier{getenv: getenv, over: over, cancel: cancel, find: exec.LookPath, run: func(ctx context.Context, path string, args ...string) {
		_ = exec.CommandContext(ctx, path, args...).Run() // a desktop that does not answer changes nothing for the question
	}}
}

// Bounds of a notification.
const (
	longestNotice = 200 // characters
	noticeTime    = 5 * time.Second
)

// notify returns what the terminal is sent about a question, in a harmless text of one line.
func (n *notifier) notify(text string) string {
	if runes := []rune(text); len(runes) > longestNotice {
		text = string(runes[:longestNotice-3]) + "..."
	}
	if sequence := n.sequence(text); sequence != "" {
		return "\a" + sequence
	}
	if n.getenv("DISPLAY") == "" && n.getenv("WAYLAND_DISPLAY") == "" || n.getenv("SSH_CONNECTION") != "" {
		return "\a"
	}
	if path, err := n.find("notify-send"); err == nil {
		n.workers.Go(func() {
			ctx, cancel := context.WithTimeout(n.over, noticeTime)
			defer cancel()
			n.run(ctx, path, "--app-name=pwos", "--", "pwos", text)
		})
	}
	return "\a"
}

// sequence returns what makes the terminal notify; "" if it is not known for that. Within tmux it is passed on to the terminal around.
func (n *notifier) sequence(text string) string {
	sequence := ""
	switch program, kind := n.getenv("TERM_PROGRAM"), n.getenv("TERM"); {
	case program == "iTerm.app", program == "WezTerm", program == "ghostty", kind == "xterm-kitty", kind == "xterm-ghostty",
		n.getenv("LC_TERMINAL") == "iTerm2", n.getenv("KITTY_WINDOW_ID") != "", n.getenv("WEZTERM_PANE") != "", n.getenv("GHOSTTY_RESOURCES_DIR") != "":
		sequence = "\x1b]9;" + text + "\x07"
	case strings.HasPrefix(kind, "foot"), strings.HasPrefix(kind, "rxvt-unicode"):
		sequence = "\x1b]777;notify;pwos;" + strings.ReplaceAll(text, ";", ",") + "\x07"
	default:
		return ""
	}
	if n.getenv("TMUX") != "" {
		sequence = "\x1bPtmux;" + strings.ReplaceAll(sequence, "\x1b", "\x1b\x1b") + "\x1b\\"
	}
	return sequence
}

// stop ends the notifications that are in flight: the agent has ended, and with it what they tell.
func (n *notifier) stop() {
	n.cancel()
	n.workers.Wait()
}
