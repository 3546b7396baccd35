package schema

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
)

// Program is an agent's program and how to run it: the part of Syscall.Spawn's data that makes the kernel host it
// (PROTOCOL 5).
type Program struct {
	Command  []string          `json:"command,omitzero" keep:"always" doc:"Program and arguments. A name without a slash is looked up in PATH. Without it no program is started."`
	Env      map[string]string `json:"env,omitzero" keep:"always" maxlen:"8192" doc:"Variables beside PATH, HOME, LANG, TMPDIR, PWOS_PID and PWOS_AGENT_ID. They are journaled, so they are no place for secrets."`
	Secrets  map[string]string `json:"secrets,omitzero" keep:"always" maxlen:"1024" doc:"Variables by the key of a sealed value below vault/, which the kernel opens at each start. The program holds the secret; the record has the key alone. From the operator alone."`
	Upstream *ProgramUpstream  `json:"upstream,omitzero" keep:"always" doc:"A server elsewhere that the program uses with a credential of the kernel's: what it sends to the address in PWOS_UPSTREAM goes there. It needs the network kernel, and the capability Upstream: with the agent's name. From the operator alone."`
	Cwd      *string           `json:"cwd,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Working directory, absolute and reached by no symbolic link: where it may write. The operator alone names one. Default: a directory of its own."`
	Restart  *string           `json:"restart,omitzero" keep:"always" enum:"never on-failure always" doc:"After which ends the program is started again. Default never."`
	TTY      *string           `json:"tty,omitzero" keep:"always" minlen:"10" maxlen:"32" doc:"Its terminal, /dev/pts/N: standard input, output and error. The operator alone names one; the channel is then descriptor 3, and it is not started again."`
	Channel  *string           `json:"channel,omitzero" keep:"always" enum:"stdio fd3" doc:"Where it speaks with the kernel: standard input and output, or descriptor 3. Default stdio."`
	Limits   *Limits           `json:"limits,omitzero" keep:"always" doc:"Bounds of what the program uses: none above the spawner's own. Default: none."`
	Sandbox  *Sandbox          `json:"sandbox,omitzero" keep:"always" short:"level" doc:"How it is confined, as a level or with what it may read, write and reach. No less than the spawner. Default: default."`
}

// ProgramUpstream is a server that only this program uses, with a credential of the kernel's (PROTOCOL 9).
type ProgramUpstream struct {
	URL  string `json:"url" keep:"always" minlen:"1" maxlen:"2048" doc:"Its address, https: or http:. Requests go to its path alone."`
	From string `json:"from" keep:"always" minlen:"7" maxlen:"1024" doc:"Key of a sealed value below vault/: a bearer token, or a login of pwos mcp login, which the kernel renews. Where nothing is stored, requests bear no credential."`
}

// Target is the parsed address, if valid for an upstream.
func (u *ProgramUpstream) Target() (*url.URL, error) {
	at, err := url.Parse(u.URL)
	if err != nil || at.Host == "" || at.User != nil || at.Fragment != "" || at.Scheme != "https" && at.Scheme != "http" {
		return nil, errors.New("must be an address such as https://mcp.example.com/mcp")
	}
	if problem := PathFault(cmp.Or(at.EscapedPath(), "/")); problem != "" {
		return nil, fmt.Errorf("has a path that %s", problem)
	}
	return at, nil
}

// Sandbox is how a program is confined (PROTOCOL 9).
type Sandbox struct {
	Level     *string  `json:"level,omitzero" keep:"always" enum:"default strict off" doc:"default: with the means that the machine has. strict: reads system files and what is named alone, and is not started where the machine lacks the means. off: not confined. Default: default."`
	Read      []string `json:"read,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths that it may read beside what the level gives."`
	Write     []string `json:"write,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths that it may write beside its working directory."`
	Hide      []string `json:"hide,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths that are hidden from it, whatever else it may read and write."`
	Net       *string  `json:"net,omitzero" keep:"always" enum:"none kernel open" doc:"Its network: none, through the kernel alone, or the kernel's user's own. Default: kernel; none for strict, open for off."`
	AllowGaps *bool    `json:"allow_gaps,omitzero" keep:"always" doc:"Start it though the machine cannot hide the kernel's state and keys."`
}

// UnmarshalJSON decodes what Decode decodes, and a bare level, as in older journals and snapshots.
func (s *Sandbox) UnmarshalJSON(raw []byte) error {
	type holder struct {
		Sandbox *Sandbox `json:"sandbox" short:"level"`
	}
	in, err := TypeOf[holder]().Decode(append(append([]byte(`{"sandbox":`), raw...), '}'))
	if err != nil {
		return err
	}
	*s = *in.(*holder).Sandbox
	return nil
}

// Named returns the named level, or the default.
func (s *Sandbox) Named() string {
	if s == nil || s.Level == nil {
		return "default"
	}
	return *s.Level
}

// Network returns the named network, or the level's.
func (s *Sandbox) Network() string {
	if s != nil && s.Net != nil {
		return *s.Net
	}
	switch s.Named() {
	case "strict":
		return "none"
	case "off":
		return "open"
	}
	return "kernel"
}

// TakesLong reports whether a program is started, so that the call runs alone on its connection.
func (p *Program) TakesLong() bool { return p.Command != nil }

// Limits bound what a program uses.
type Limits struct {
	CPUSeconds  *int64 `json:"cpu_seconds,omitzero" keep:"always" min:"1" max:"3153600000" doc:"Processor time of one process, in seconds."`
	MemoryBytes *int64 `json:"memory_bytes,omitzero" keep:"always" min:"1" doc:"Private writable memory of one process, in bytes."`
	OpenFiles   *int64 `json:"open_files,omitzero" keep:"always" min:"8" max:"2147483647" doc:"Open descriptors of one process."`
	WallSeconds *int64 `json:"wall_seconds,omitzero" keep:"always" min:"1" max:"3153600000" doc:"Time from its start, in seconds."`
	Processes   *int64 `json:"processes,omitzero" keep:"always" min:"1" max:"2147483647" doc:"Processes that it may have at once."`
}

// Hosted is the part of a descriptor that an agent with a program has.
type Hosted struct {
	Command  []string `json:"command,omitzero" keep:"always" doc:"Program and arguments, of a hosted agent."`
	OSPID    *int64   `json:"os_pid,omitzero" keep:"always" doc:"Number of the program's first process in the system, from its start until nothing of it is left."`
	Restarts *int64   `json:"restarts,omitzero" keep:"always" doc:"How often the program was started again."`
	Exit     *Exit    `json:"exit,omitzero" keep:"always" doc:"The program's last end."`
	Sandbox  *string  `json:"sandbox,omitzero" keep:"always" doc:"What confines the program: a level such as namespaces+landlock:v7, none where the system has none, off."`
}

// Exit is the end of a program and all its processes.
type Exit struct {
	Code   *int64  `json:"code,omitzero" keep:"always" doc:"Exit code; none where a signal ended it, it was never started, or nobody knows."`
	Signal *int64  `json:"signal,omitzero" keep:"always" doc:"Number of the signal that ended it."`
	Reason string  `json:"reason" keep:"always" doc:"exited, signalled, ordered, limit:cpu, limit:wall, limit:processes, not started, shutdown, or unknown: the kernel died meanwhile."`
	Fault  *string `json:"fault,omitzero" keep:"always" enum:"RECOVERABLE QUARANTINE EXILE" doc:"What the end counts as."`
	Why    *string `json:"why,omitzero" keep:"always" doc:"The same in words."`
	Tick   int64   `json:"tick" keep:"always" doc:"Tick at which it was noted."`
}

// ProcessStartInput is the data of the kernel's own Process.NoteStart.
type ProcessStartInput struct {
	PID     int64  `json:"pid" keep:"always" min:"1" doc:"Process whose program runs."`
	OSPID   int64  `json:"os_pid" keep:"always" doc:"Number of its first process in the system."`
	Sandbox string `json:"sandbox" keep:"always" doc:"What confines it."`
	Again   bool   `json:"again" keep:"always" doc:"It is no first start."`
}

// ProcessEndInput is the data of the kernel's own Process.NoteEnd.
type ProcessEndInput struct {
	PID          int64   `json:"pid" keep:"always" min:"1" doc:"Process whose program ended."`
	Code         *int64  `json:"code,omitzero" keep:"always" doc:"Exit code."`
	Signal       *int64  `json:"signal,omitzero" keep:"always" doc:"Signal that ended it."`
	Reason       string  `json:"reason" keep:"always" doc:"Why it ended."`
	Fault        *string `json:"fault,omitzero" keep:"always" doc:"What that counts as."`
	Why          *string `json:"why,omitzero" keep:"always" doc:"The same in words."`
	Restart      bool    `json:"restart" keep:"always" doc:"It is to be started again; else the process ends."`
	BlockedTicks int64   `json:"blocked_ticks" keep:"always" min:"0" doc:"How many ticks the process is blocked before that."`
	Faults       int64   `json:"faults" keep:"always" min:"0" doc:"Faults in a row, this one included."`
	Quick        int64   `json:"quick" keep:"always" min:"0" doc:"Early ends in a row, this one included."`
}

// OnLoopback reports whether a host is a loopback name or address.
func OnLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost"
}
