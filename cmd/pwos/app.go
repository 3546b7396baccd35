package main

import (
	"os"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
)

// app has the verbs as methods.
type app struct{ *cli.App }

func newApp(stdin, stdout, stderr *os.File) *app { return &app{cli.New(stdin, stdout, stderr)} }
