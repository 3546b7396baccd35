// Package notify runs the operator's command for each request for approval.
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
	mostQueued = 256 // questions in the queue; further ones are not reported
	mostOutput = 1 << 10
)

// Notifier runs the command of [approval] notify for each question, with the question as JSON on its stdin. No call
// waits for it.
type Notifier struct {
	command []string
	env     []string
	log     *slog.Logger
	queue   chan []byte
	life    context.Context // ends with close
	end     context.CancelFunc
	runs    sync.WaitGroup
}

// New starts a Notifier. The command finds the kernel by PWOS_RUNTIME_DIR. New returns nil without a command.
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

// Raised queues a question. It does not block.
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

// run runs the command once, and kills its process group at the end.
func (n *Notifier) run(question []byte) {
	ctx, cancel := context.WithTimeout(n.life, mostTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, n.command[0], n.command[1:]...)
	cmd.Stdin, cmd.Env, cmd.Dir = bytes.NewReader(question), n.env, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for processes outside the group that hold the output open
	out := &head{}
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil && n.life.Err() == nil {
		n.log.Error("the command of approval.notify failed", "command", n.command[0], "error", err, "output", out.String())
	}
}

// head is a writer that keeps the first bytes.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := mostOutput - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// Close kills the running command. Queued questions are not reported.
func (n *Notifier) Close() {
	if n != nil {
		n.end()
		n.runs.Wait()
	}
}
