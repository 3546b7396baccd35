package programs

import (
	"fmt"
	"strings"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/host"
)

// Bounds of what the log shows of a program that does not speak the protocol.
const (
	greetPatience = 3 * time.Second
	mostShown     = 5   // lines that are not messages
	mostShownText = 120 // bytes of each
)

// ordinary says how to run a program that does not speak the protocol.
const ordinary = `an ordinary program runs with "pwos run -- PROGRAM", which leaves it its standard output`

// greetStdio runs the prologue with a program on its standard output. For a program that does not speak the protocol, the
// log shows what it prints, and that the kernel waits.
func greetStdio(program *host.Process, conn prologue) error {
	note := func(format string, args ...any) { program.Note("pwos: " + fmt.Sprintf(format, args...)) }
	late := time.AfterFunc(greetPatience, func() {
		note("pid %d (%.60q) has not answered the kernel's first line for %v: the kernel waits for a reply of type Syscall.Authenticate on its standard output; %s",
			program.PID(), program.AgentID(), greetPatience, ordinary)
	})
	defer late.Stop()
	others := 0
	err := access.Greet(conn, func(line []byte) {
		if others++; others <= mostShown {
			note("not a message: %s", shortened(line))
		}
	})
	if more := others - mostShown; more > 0 {
		note("and %d more lines that are not messages", more)
	}
	if err != nil && others > 0 {
		note("%s", ordinary)
	}
	return err
}

// shortened returns the beginning of a line, safe for any terminal.
func shortened(line []byte) string {
	cut := ""
	if len(line) > mostShownText {
		line, cut = line[:mostShownText], "..."
	}
	return fmt.Sprintf("%q", strings.ToValidUTF8(string(line), "?")) + cut
}
