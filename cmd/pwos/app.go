package main

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// app has the verbs as methods.
type app struct {
	*cli.App
	notes []string       // of a run, until keepNotes
	quit  chan os.Signal // gets a SIGQUIT that ends this process
}

func newApp(stdin, stdout, stderr *os.File) *app {
	return &app{App: cli.New(stdin, stdout, stderr), quit: make(chan os.Signal, 1)}
}

// endByQuit makes SIGQUIT end this process, unless it is ignored. Go itself would print the stacks of all goroutines.
func (a *app) endByQuit() {
	if !signal.Ignored(syscall.SIGQUIT) {
		signal.Notify(a.quit, syscall.SIGQUIT)
	}
}
