// Command pwosd is the kernel daemon.
package main

import (
	"os"

	"github.com/promptware-os/pwos/daemon"
)

func main() {
	daemon.Shim() // before anything else: a program of an agent begins here
	os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
