// Command pwosd is the kernel daemon.
package main

import (
	"os"

	"github.com/promptware-os/pwos/daemon"
)

func main() {
	daemon.Shim() // must run first: the daemon starts the programs of agents through this binary
	os.Exit(daemon.Main(os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}
