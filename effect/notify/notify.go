// Package notify tells people of questions: it runs the command that the configuration names for that.
package notify

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

// Bounds of the command that reports questions.
const (
	mostTime   = 10 * time.Second // of one run
	atOnce     = 4
	mostQueued = 256 // questions that wait for a run; further ones are not reported
	mostOutput = 1 << 10
)

// Notifier runs the command of [approval] notify for each question, with the question as JSON on its stdin. Nothing waits for it.
type Notifier struct {
	command []string
	env     []string
	log     *slog.Logger
	queue   chan []byte
	life    context.Context // ends with close
	end     context.CancelFunc
	runs    sync.WaitGroup
}

// New starts the goroutine that runs the command, which finds the kernel by PWOS_RUNTIME_DIR. It
// returns nil without a command.
func New(command []string, runtimeDir string, log *slog.Logger) *Notifier {
	if len(command) == 0 {
		return nil
	}
	n := &Notifier{command: command, env: append(os.Environ(), "PWOS_RUNTIME_DIR="+runtimeDir), log: log, queue: make(chan []byte, mostQueued)}
	n.life, n.end = context.WithCancel(context.Background())
	for range atOnce {
		n.runs.Go(n.serve)
	}
	return n
}

// Raised has the command run for a question. It does not wait.
func (n *Notifier) Raised(a *approval.Approval) {
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
	n.log.Error("a question was not reported: the command of approval.notify was not run", "approval", a.ID, "error", err)
}

func (n *Notifier) serve() {
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
func (n *Notifier) run(question []byte) {
	ctx, cancel := context.WithTimeout(n.life, mostTime)
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
	if room := mostOutput - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// Close ends the runs. Waiting questions are not reported.
func (n *Notifier) Close() {
	if n != nil {
		n.end()
		n.runs.Wait()
	}
}
