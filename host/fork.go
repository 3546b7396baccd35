package host

import (
	"os"
	"runtime"
	"syscall"
)

// forks starts processes from one system thread that lives as long as the host. A parent-death signal comes when the
// thread that forked dies, not the process, and Go ends threads when it likes.
type forks struct {
	calls chan *forkCall
	done  chan struct{}
}

// forkCall asks for a process: this program again, in a session of its own.
type forkCall struct {
	argv  []string
	env   []string
	dir   string
	files []*os.File
	reply chan forkReply
}

type forkReply struct {
	watched *watched
	err     error
}

// newForks starts the thread.
func newForks() *forks {
	f := &forks{calls: make(chan *forkCall), done: make(chan struct{})}
	go f.run()
	return f
}

// run serves calls until stop. The thread is never unlocked, so that it ends with the goroutine: nothing else may run on
// a thread whose end kills.
func (f *forks) run() {
	defer close(f.done)
	runtime.LockOSThread()
	for call := range f.calls {
		w, err := call.do()
		call.reply <- forkReply{w, err}
	}
}

// stop ends the thread, and with it every process that still has it for a parent.
func (f *forks) stop() {
	close(f.calls)
	<-f.done
}

// fork starts a process. It may not be called after stop.
func (f *forks) fork(c *forkCall) (*watched, error) {
	c.reply = make(chan forkReply, 1)
	f.calls <- c
	r := <-c.reply
	return r.watched, r.err
}

// do forks.
func (c *forkCall) do() (*watched, error) {
	self, err := itself()
	if err != nil {
		return nil, err
	}
	attr := &syscall.ProcAttr{Dir: c.dir, Env: c.env, Sys: &syscall.SysProcAttr{Setsid: true}}
	for _, file := range c.files {
		// Fd makes an end blocking, as programs expect it. Of these ends we keep nothing.
		attr.Files = append(attr.Files, file.Fd())
	}
	w := newWatched(attr.Sys)
	pid, err := syscall.ForkExec(self, c.argv, attr)
	runtime.KeepAlive(c.files)
	if err != nil {
		return nil, class(err)
	}
	if err := w.begin(pid); err != nil {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
		return nil, class(err)
	}
	return w, nil
}
