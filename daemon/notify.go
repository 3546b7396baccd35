package daemon

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/promptware-os/pwos/kernel/approval"
	"github.com/promptware-os/pwos/schema"
)

// Bounds of the command that tells somebody of questions.
const (
	notifyTime   = 10 * time.Second // of one run
	notifyAtOnce = 4
	notifyQueue  = 256 // questions that wait for a run; of those beyond nobody is told
	notifyOutput = 1 << 10
)

// notifier runs the command of [approval] notify for each question, with the question as JSON on its stdin. Nothing waits for it.
type notifier struct {
	command []string
	env     []string
	log     *slog.Logger
	queue   chan []byte
	life    context.Context // ends with close
	end     context.CancelFunc
	runs    sync.WaitGroup
}

// newNotifier starts what runs the command; nil where there is none.
func newNotifier(command []string, runtimeDir string, log *slog.Logger) *notifier {
	if len(command) == 0 {
		return nil
	}
	n := &notifier{command: command, env: append(os.Environ(), "PWOS_RUNTIME_DIR="+runtimeDir), log: log, queue: make(chan []byte, notifyQueue)}
	n.life, n.end = context.WithCancel(context.Background())
	for range notifyAtOnce {
		n.runs.Go(n.serve)
	}
	return n
}

// raised has the command run for a question. It does not wait.
func (n *notifier) raised(a *approval.Approval) {
	if n == nil {
		return
	}
	text, err := schema.Marshal(&a.ApprovalState)
	if err == nil {
		select {
		case n.queue <- append(text, '\n'):
			return
		default:
			err = errors.New("too many questions wait for it")
		}
	}
	n.log.Error("nobody is told of a question: the command of approval.notify was not run", "approval", a.ID, "error", err)
}

func (n *notifier) serve() {
	for {
		select {
		case <-n.life.Done():
			return
		case question := <-n.queue:
			n.run(question)
		}
	}
}

// run runs the command once, and ends what it has left in its process group.
func (n *notifier) run(question []byte) {
	ctx, cancel := context.WithTimeout(n.life, notifyTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.command[0], n.command[1:]...)
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(question), n.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for what it has started elsewhere and holds its output open
	out := &head{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && n.life.Err() == nil {
		n.log.Error("the command of approval.notify failed", "command", n.command[0], "error", err, "output", out.String())
	}
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := notifyOutput - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// close ends the runs. Of questions that wait nobody is told.
func (n *notifier) close() {
	if n != nil {
		n.end()
		n.runs.Wait()
	}
}
