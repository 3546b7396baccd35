package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// paged calls write with the input of the user's pager, as git chooses it, or with stdout if there is none or it is no terminal. A pager
// that ends early ends write, without an error.
func (a *app) paged(write func(io.Writer) error) error {
	pager := pagerOf(os.Getenv)
	if pager == "" || a.JSON || !a.StdoutTerminal() {
		return write(a.Stdout)
	}
	// A shell runs it, as with git. Git itself is not asked for core.pager: the configuration of a repository may be an agent's.
	cmd := exec.Command("/bin/sh", "-c", pager)
	cmd.Stdout, cmd.Stderr, cmd.Env = a.Stdout, a.Stderr, os.Environ()
	for name, value := range map[string]string{"LESS": "FRX", "LV": "-c"} {
		if _, set := os.LookupEnv(name); !set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("start pager: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start pager: %w", err)
	}
	err = write(in)
	if errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	// An interrupt is the pager's too, which may go on: it is waited for, or it would have the terminal with a shell.
	if ended := errors.Join(in.Close(), cmd.Wait()); ended != nil && err == nil {
		err = fmt.Errorf("run pager %s: %w", pager, ended)
	}
	return err
}

// pagerOf returns the command line of the pager; "" if none is wanted, or there is none.
func pagerOf(getenv func(string) string) string {
	for _, name := range []string{"GIT_PAGER", "PAGER"} {
		switch pager := getenv(name); pager {
		case "":
		case "cat":
			return ""
		default:
			return pager
		}
	}
	if _, err := exec.LookPath("less"); err != nil {
		return ""
	}
	return "less"
}
