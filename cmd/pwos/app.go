package main

import (
	"os"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// app has the verbs as methods.
type app struct {
	*cli.App
	notes []string // of a run, until keepNotes
}

func newApp(stdin, stdout, stderr *os.File) *app { return &app{App: cli.New(stdin, stdout, stderr)} }
