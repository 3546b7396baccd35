package schema

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Program is the part of the data of Syscall.Spawn that describes the program of an agent and how the kernel runs it
// (PROTOCOL 5).
type Program struct {
	Command  []string          `json:"command,omitzero" keep:"always" doc:"Program and arguments. A name without a slash is looked up in PATH. Without it no program is started."`
	Env      map[string]string `json:"env,omitzero" keep:"always" maxlen:"65536" doc:"Variables in addition to PATH, HOME, USER, LOGNAME, LANG, TMPDIR, PWOS_RUNTIME_DIR, PWOS_PID and PWOS_AGENT_ID; a value has at most 8192 characters. The journal has them sealed with the kernel's host key, except PATH and others that are never secret."`
	Secrets  map[string]string `json:"secrets,omitzero" keep:"always" maxlen:"1024" doc:"Variables by the key of a sealed value below vault/, which the kernel opens at each start. The program gets the secret; the journal has only the key. Operator only."`
	Logins   map[string]string `json:"logins,omitzero" keep:"always" maxlen:"8192" doc:"Credentials for upstreams that take a login, by the login's name: for this program and those that it spawns, in place of what the kernel holds. The program does not get them; the journal has them sealed with the kernel's host key. Needs network kernel. Operator only; an agent has those of its spawner."`
	Upstream *ProgramUpstream  `json:"upstream,omitzero" keep:"always" doc:"A remote server that the program uses with a credential of the kernel: requests to the address in PWOS_UPSTREAM are sent to it. Needs network kernel, and the capability Upstream: with the agent's name. Operator only."`
	Publish  []string          `json:"publish,omitzero" keep:"always" minlen:"1" maxlen:"32" doc:"Ports of its network that can be reached on the loopback of the kernel's machine, as PORT, or PORT:PORT where they differ: there, and in its network. Needs network kernel. Operator only."`
	Cwd      *string           `json:"cwd,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Working directory, where it may write: an absolute path without symbolic links. An agent can only name its own. Default: a private directory."`
	Snapshot *string           `json:"snapshot,omitzero" keep:"always" minlen:"1" maxlen:"64" doc:"Id of the copy of cwd that was made before. Operator only."`
	Restart  *string           `json:"restart,omitzero" keep:"always" enum:"never on-failure always" doc:"When the program is restarted after it ends. Default never."`
	Stdio    *string           `json:"stdio,omitzero" keep:"always" minlen:"4" maxlen:"32" doc:"Socket in the runtime directory, io-X, at which its caller listens and hands over its own standard input, output and error. Operator only. The channel is then descriptor 3, and the program is not restarted."`
	Stderr   *string           `json:"stderr,omitzero" keep:"always" minlen:"2" maxlen:"4096" doc:"Path of a FIFO that gets what it writes to standard error, besides its log. The program waits for the reader. Operator only."`
	Sign     *string           `json:"sign,omitzero" keep:"always" minlen:"2" maxlen:"4096" doc:"Path of the socket of an ssh-agent, with whose keys it may sign for git, and do nothing else: SSH_AUTH_SOCK names where. Operator only."`
	User     *string           `json:"user,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"User that it runs as, by name, or by number: a text of digits. Needs a kernel that is user 0. Operator only; the program of an agent runs as its spawner's. Default: user of [agents], else the kernel's."`
	Umask    *int64            `json:"umask,omitzero" keep:"always" min:"0" max:"511" doc:"Permissions that files it makes do not get, as a number: 18 is 022. Default: those of the kernel."`
	Channel  *string           `json:"channel,omitzero" keep:"always" enum:"stdio fd3" doc:"Its channel to the kernel: standard input and output, or descriptor 3. Default stdio."`
	Limits   *Limits           `json:"limits,omitzero" keep:"always" doc:"Resource limits of the program, at most the spawner's own. Default: no limits."`
	Sandbox  *Sandbox          `json:"sandbox,omitzero" keep:"always" short:"level" doc:"How it is confined, as a level or with what it may read, write and reach. At least as strictly as the spawner. Default: default."`
}

// ProgramUpstream is an upstream that only this program uses. The kernel adds the credential (PROTOCOL 9).
type ProgramUpstream struct {
	URL  string `json:"url" keep:"always" minlen:"1" maxlen:"2048" doc:"Its address, https: or http:. Requests go to this path only."`
	From string `json:"from" keep:"always" minlen:"7" maxlen:"1024" doc:"Key of a sealed value below vault/: a bearer token, or a login of pwos mcp login, which the kernel renews. If nothing is stored, requests carry no credential."`
}

// Target returns the parsed URL, or an error if it is not valid for an upstream.
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

// Sandbox has the settings of a program's sandbox (PROTOCOL 9).
type Sandbox struct {
	Level     *string           `json:"level,omitzero" keep:"always" enum:"default strict off" doc:"default: with the mechanisms that the machine has. strict: may read only system files and what is named, and does not start if the machine lacks a mechanism. off: not confined. Default: default."`
	Read      []string          `json:"read,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths that it may read in addition to the level's."`
	Write     []string          `json:"write,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths that it may write in addition to its working directory."`
	Hide      []string          `json:"hide,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths that are hidden from it, whatever else it may read and write."`
	Hold      []string          `json:"hold,omitzero" keep:"always" minlen:"1" maxlen:"4096" doc:"Absolute paths of directories: files named .env* in the projects that these are in are shown without their content, except for those that read and write name. Operator only; an agent has those of its spawner. Default: cwd."`
	Copies    map[string]string `json:"copies,omitzero" keep:"always" maxlen:"4096" doc:"What stands at absolute paths where it may write: the absolute path of a private copy; an empty one: itself, which it may only read. A directory that is its own copy is writable. Where the system has no mount namespaces it is not used. Operator only; an agent has those of its spawner."`
	Review    *string           `json:"review,omitzero" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the agent on whose copy of cwd, or of the repository that this is in, it works in its place. The copy is made at the start, unless there is one; Review.Apply takes over what was changed, Review.Discard drops it. Operator only; an agent has that of its spawner."`
	Net       *string           `json:"net,omitzero" keep:"always" enum:"none kernel open" doc:"Its network: none; kernel, only through the kernel; open, that of the kernel's user. Default: kernel; none for strict, open for off."`
	AllowGaps *bool             `json:"allow_gaps,omitzero" keep:"always" doc:"Start it even if the machine cannot hide the kernel's state and keys."`
}

// UnmarshalJSON decodes an object, or a string with only the level, as in older journals and snapshots.
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

// Named returns the level, or the default if none is set.
func (s *Sandbox) Named() string {
	if s == nil || s.Level == nil {
		return "default"
	}
	return *s.Level
}

// Held returns the directories whose projects have files that are shown without their content.
func (p *Program) Held() []string {
	switch {
	case p.Sandbox.Named() == "off":
		return nil
	case p.Sandbox != nil && p.Sandbox.Hold != nil:
		return p.Sandbox.Hold
	case p.Cwd != nil:
		return []string{*p.Cwd}
	}
	return nil
}

// Network returns the network, or that of the level if none is set.
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

// SetVariable sets a variable of the program's environment: to a value, or to the secret that the kernel opens if the value is
// the key of a sealed one.
func (p *Program) SetVariable(name, value string) {
	to, other := &p.Env, p.Secrets
	if strings.HasPrefix(value, "vault/") {
		to, other = &p.Secrets, p.Env
	}
	if *to == nil {
		*to = make(map[string]string)
	}
	(*to)[name] = value
	delete(other, name)
}

// TakesLong reports whether a program is started, so that the call runs alone on its connection.
func (p *Program) TakesLong() bool { return p.Command != nil }

// Limits bounds the resources of a program.
type Limits struct {
	CPUSeconds  *int64 `json:"cpu_seconds,omitzero" keep:"always" min:"1" max:"3153600000" doc:"Processor time of one process, in seconds."`
	MemoryBytes *int64 `json:"memory_bytes,omitzero" keep:"always" min:"1" doc:"Private writable memory of one process, in bytes."`
	OpenFiles   *int64 `json:"open_files,omitzero" keep:"always" min:"8" max:"2147483647" doc:"Open descriptors of one process."`
	WallSeconds *int64 `json:"wall_seconds,omitzero" keep:"always" min:"1" max:"3153600000" doc:"Time from its start, in seconds."`
	Processes   *int64 `json:"processes,omitzero" keep:"always" min:"1" max:"2147483647" doc:"Processes that it may have at once."`
}

// Hosted is the part of a descriptor that only an agent with a program has.
type Hosted struct {
	Command   []string `json:"command,omitzero" keep:"always" doc:"Program and arguments, of a hosted agent."`
	OSPID     *int64   `json:"os_pid,omitzero" keep:"always" doc:"Operating system PID of the program's first process, from its start until all its processes have ended."`
	Restarts  *int64   `json:"restarts,omitzero" keep:"always" doc:"How often the program was started again."`
	Exit      *Exit    `json:"exit,omitzero" keep:"always" doc:"The program's last end."`
	User      *string  `json:"user,omitzero" keep:"always" doc:"User that the program runs as, where its spawn names one."`
	Snapshot  *string  `json:"snapshot,omitzero" keep:"always" doc:"Id of the copy of its working directory from before its start."`
	Upstreams []string `json:"upstreams,omitzero" keep:"always" doc:"Upstreams that the kernel serves in the program's network."`
	Sandbox   *string  `json:"sandbox,omitzero" keep:"always" doc:"What confines the program: a level such as namespaces+landlock:v7, none where the system has none, off."`
}

// Exit describes the end of a program and all its processes.
type Exit struct {
	Code   *int64  `json:"code,omitzero" keep:"always" doc:"Exit code. Absent if a signal ended it, it was never started, or the end is unknown."`
	Signal *int64  `json:"signal,omitzero" keep:"always" doc:"Number of the signal that ended it."`
	Reason string  `json:"reason" keep:"always" doc:"exited, signalled, ordered, limit:cpu, limit:wall, limit:processes, limit:disk, not started, shutdown, or unknown: the kernel was not running."`
	Fault  *string `json:"fault,omitzero" keep:"always" enum:"RECOVERABLE QUARANTINE EXILE" doc:"What the end counts as."`
	Why    *string `json:"why,omitzero" keep:"always" doc:"The same in words."`
	Tick   int64   `json:"tick" keep:"always" doc:"Tick at which it was recorded."`
	Time   int64   `json:"time,omitzero" keep:"always" doc:"When it was recorded, in milliseconds since the Unix epoch."`
}

// ProcessStartInput is the data of the kernel's own Process.NoteStart.
type ProcessStartInput struct {
	PID       int64    `json:"pid" keep:"always" min:"1" doc:"Process whose program runs."`
	OSPID     int64    `json:"os_pid" keep:"always" doc:"Operating system PID of its first process."`
	Sandbox   string   `json:"sandbox" keep:"always" doc:"What confines it."`
	Again     bool     `json:"again" keep:"always" doc:"Whether this is a restart."`
	Upstreams []string `json:"upstreams,omitzero" keep:"always" doc:"Upstreams that the kernel serves in its network."`
}

// ProcessEndInput is the data of the kernel's own Process.NoteEnd.
type ProcessEndInput struct {
	PID          int64   `json:"pid" keep:"always" min:"1" doc:"Process whose program ended."`
	Code         *int64  `json:"code,omitzero" keep:"always" doc:"Exit code."`
	Signal       *int64  `json:"signal,omitzero" keep:"always" doc:"Signal that ended it."`
	Reason       string  `json:"reason" keep:"always" doc:"Why it ended."`
	Fault        *string `json:"fault,omitzero" keep:"always" doc:"What that counts as."`
	Why          *string `json:"why,omitzero" keep:"always" doc:"The same in words."`
	Restart      bool    `json:"restart" keep:"always" doc:"Whether the program is restarted; else the process ends."`
	BlockedTicks int64   `json:"blocked_ticks" keep:"always" min:"0" doc:"How many ticks the process is blocked before that."`
	Faults       int64   `json:"faults" keep:"always" min:"0" doc:"Faults in a row, this one included."`
	Quick        int64   `json:"quick" keep:"always" min:"0" doc:"Early ends in a row, this one included."`
}

// OnLoopback reports whether a host is a loopback name or address.
func OnLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || host == "localhost"
}
