package schema

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Net is the domain of the network connections that agents make through the kernel.
const Net Domain = "net"

// NetConnectInput is the data of the kernel's own Net.Connect, which it calls for the agent that connects.
type NetConnectInput struct {
	Host    string `json:"host" keep:"always" minlen:"1" maxlen:"260" doc:"Host that the agent connects to."`
	Port    int64  `json:"port,omitzero" keep:"always" min:"0" max:"65535" doc:"Port; absent: the name was only looked up."`
	Local   bool   `json:"local,omitzero" keep:"always" doc:"Whether it is a service on the loopback of the kernel's machine, which Localhost:PORT grants."`
	Refused string `json:"refused,omitzero" keep:"always" maxlen:"1024" doc:"Why the connection is refused whatever the capability allows."`
	NetMaker
}

// NetMaker is the process that made a connection, by its socket.
type NetMaker struct {
	Program string `json:"program,omitzero" keep:"always" maxlen:"4096" doc:"File of the program whose process has the socket; absent: it was not found."`
	Step    string `json:"step,omitzero" keep:"always" maxlen:"300" doc:"The tool call, as NAME:12, in which this process, or what started it, was started; absent: in none, or it is not known in which."`
}

// NetConnectOutput is the outcome of a connection.
type NetConnectOutput struct {
	Host     string `json:"host" keep:"always" doc:"Host that the agent connected to."`
	Port     int64  `json:"port" keep:"always" doc:"Port."`
	Sent     int64  `json:"sent" keep:"always" doc:"Bytes from the agent to the host."`
	Received int64  `json:"received" keep:"always" doc:"Bytes from the host to the agent."`
	Ended    string `json:"ended" keep:"always" doc:"Why it ended."`
}

// NetPublishInput is the data of the kernel's own Net.Publish, which it calls for the agent whose port is reached.
type NetPublishInput struct {
	Port   int64 `json:"port" keep:"always" min:"1" max:"65535" doc:"Port on the loopback of the kernel's machine."`
	Inside int64 `json:"inside" keep:"always" min:"1" max:"65535" doc:"Port in the agent's network."`
}

// NetPublishOutput is the outcome of a published port.
type NetPublishOutput struct {
	Port        int64  `json:"port" keep:"always" doc:"Port on the loopback of the kernel's machine."`
	Connections int64  `json:"connections" keep:"always" doc:"Connections to the agent."`
	Sent        int64  `json:"sent" keep:"always" doc:"Bytes from the agent."`
	Received    int64  `json:"received" keep:"always" doc:"Bytes to the agent."`
	Ended       string `json:"ended" keep:"always" doc:"Why it ended."`
}

// ParsePublished parses a port of this machine and the port of an agent's network that it leads to: PORT or PORT:PORT.
func ParsePublished(text string) (port, inside uint16, err error) {
	outer, inner, two := strings.Cut(text, ":")
	if !two {
		inner = outer
	}
	port, ok := parsePort(outer)
	inside, too := parsePort(inner)
	if !ok || !too {
		return 0, 0, fmt.Errorf("%q must be a port from 1 to 65535, or two, such as 3000 or 8080:3000: that of this machine, and that of the agent", text)
	}
	return port, inside, nil
}

// parsePort parses a port in its only form, without a sign or leading zeros.
func parsePort(text string) (uint16, bool) {
	n, err := strconv.ParseUint(text, 10, 16)
	return uint16(n), err == nil && n > 0 && strconv.FormatUint(n, 10) == text
}

// Localhost returns the pattern of a capability that lets an agent connect to a port of this machine's loopback.
func Localhost(port uint16) string { return localhostWord + strconv.Itoa(int(port)) }

const localhostWord = "Localhost:"

// LocalhostPort returns the port of a pattern that Localhost returns.
func LocalhostPort(pattern string) (port uint16, ok bool) {
	text, ok := strings.CutPrefix(pattern, localhostWord)
	if !ok {
		return 0, false
	}
	return parsePort(text)
}

// NetRequestInput is the data of the kernel's own Net.Request, which it calls for the agent that makes a request to
// an upstream.
type NetRequestInput struct {
	Upstream string `json:"upstream" keep:"always" minlen:"1" maxlen:"256" doc:"Name of the upstream, or of the agent that it was configured for."`
	Method   string `json:"method" keep:"always" minlen:"1" maxlen:"32" doc:"Method."`
	Path     string `json:"path" keep:"always" minlen:"1" maxlen:"2048" doc:"Path, without its query."`
	Refused  string `json:"refused,omitzero" keep:"always" maxlen:"1024" doc:"Why the request is refused whatever the capability allows."`
	NetMaker

	MaxTokens   int64 `json:"max_tokens,omitzero" keep:"always" min:"0" doc:"Most tokens of an answer that the request asks a model for."`
	MaxMicroUSD int64 `json:"max_micro_usd,omitzero" keep:"always" min:"0" doc:"What these cost, in millionths of a US dollar."`
}

// NetRequestOutput is the outcome of a request to an upstream.
type NetRequestOutput struct {
	Upstream string    `json:"upstream" keep:"always" doc:"Name of the upstream."`
	Method   string    `json:"method" keep:"always" doc:"Method."`
	Path     string    `json:"path" keep:"always" doc:"Path, without its query."`
	Status   int64     `json:"status" keep:"always" doc:"Status that the upstream answered with."`
	Sent     int64     `json:"sent" keep:"always" doc:"Bytes of the request's body."`
	Received int64     `json:"received" keep:"always" doc:"Bytes of the answer's body that the agent was sent."`
	Usage    *NetUsage `json:"usage,omitzero" keep:"always" doc:"What a model's answer reports of its use."`
	Ended    string    `json:"ended" keep:"always" doc:"Why the request ended."`
}

// NetComplete is the value of NetRequestOutput.Ended for a complete answer.
const NetComplete = "the answer was complete"

// NetUsage is the usage that a model's answer reports.
type NetUsage struct {
	Model       string `json:"model,omitzero" keep:"always" doc:"Name of the model."`
	Input       int64  `json:"input_tokens" keep:"always" doc:"Tokens of the prompt, in the upstream's count."`
	Output      int64  `json:"output_tokens" keep:"always" doc:"Tokens of the answer."`
	CachedRead  int64  `json:"cache_read_tokens,omitzero" keep:"always" doc:"Tokens of the prompt that came from a cache."`
	CachedWrite int64  `json:"cache_write_tokens,omitzero" keep:"always" doc:"Tokens of the prompt that were put into a cache."`
	MicroUSD    int64  `json:"micro_usd,omitzero" keep:"always" doc:"What it cost, in millionths of a US dollar, by the prices of the configuration and those that pwos knows."`
	Dearest     bool   `json:"dearest,omitzero" keep:"always" doc:"No price of the model is known: it was counted at the dearest that is known of its vendor."`
	Estimated   bool   `json:"estimated,omitzero" keep:"always" doc:"Whether part is estimated: the answer did not report its usage, so its tokens are counted from its text."`
}

// LoginKey returns the key of a login that the kernel holds for upstreams, which is sealed with its host key.
func LoginKey(name string) string { return "vault/login/" + name }

// UpstreamName reports whether name is a valid name of an upstream: lower-case letters, digits and hyphens.
func UpstreamName(name string) bool {
	return name != "" && len(name) <= 64 && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// NetRule describes requests that an upstream accepts: a method, or * for any, and a path or a prefix.
type NetRule struct {
	Method string
	Path   string
	Prefix bool // Path is a prefix
}

// ParseNetRule parses a rule such as "POST /v1/messages" or "POST /v1/…". An ellipsis, "..." or "*" at the end makes
// the path a prefix.
func ParseNetRule(text string) (NetRule, error) {
	method, path, ok := strings.Cut(text, " ")
	if !ok || method == "" || method != "*" && strings.Trim(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		return NetRule{}, fmt.Errorf("%q must be a method in capital letters, or *, and a path, such as \"POST /v1/…\"", text)
	}
	r := NetRule{Method: method, Path: path}
	for _, end := range []string{"…", "...", "*"} {
		if rest, found := strings.CutSuffix(path, end); found {
			r.Path, r.Prefix = rest, true
			break
		}
	}
	switch {
	case unforwarded(method):
		return NetRule{}, fmt.Errorf("%q: %s cannot be allowed, since its answer may show the credential", text, method)
	case !strings.HasPrefix(r.Path, "/") || PathFault(strings.TrimSuffix(r.Path, "/")+"/") != "" || strings.ContainsAny(r.Path, "?*… "):
		return NetRule{}, fmt.Errorf("%q must have a path that begins with / and has no query, no empty, . or .. segment, and a wildcard at its end alone", text)
	}
	return r, nil
}

// Allows reports whether the rule accepts a request whose path has no fault.
func (r NetRule) Allows(method, path string) bool {
	if unforwarded(method) || r.Method != "*" && r.Method != method {
		return false
	}
	return path == r.Path || r.Prefix && strings.HasPrefix(path, r.Path)
}

// unforwarded reports whether a method is never forwarded: the answer to TRACE repeats the request with its
// credential.
func unforwarded(method string) bool {
	return slices.Contains([]string{"TRACE", "TRACK", "CONNECT"}, method)
}

// PathFault returns why two servers may interpret an escaped path differently; "" if they do not.
func PathFault(path string) string {
	lower := strings.ToLower(path)
	for _, escape := range []string{"%2f", "%5c", "%2e", "%25", "%3b", "%3f", "%23"} {
		if strings.Contains(lower, escape) {
			return "has the escape " + escape
		}
	}
	switch {
	case !strings.HasPrefix(path, "/"):
		return "does not begin with /"
	case strings.Contains(path, "//"):
		return "has an empty segment"
	case strings.Contains(path, `\`) || strings.Contains(path, ";"):
		return `has a \ or a ;`
	case strings.ContainsFunc(path, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "has a character that is not escaped"
	}
	plain, err := url.PathUnescape(path)
	switch {
	case err != nil:
		return "has an invalid escape"
	case !utf8.ValidString(plain): // such as %c0%ae, an over-long form of the dot
		return "has an escape that is not UTF-8"
	case strings.ContainsFunc(plain, unicode.IsControl):
		return "has an escaped control character"
	case strings.ContainsAny(plain, lookalikes):
		return "has a character that some servers take for a separator, a dot or a percent sign"
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "has a segment that is . or .."
		}
	}
	return ""
}

// lookalikes are the characters that servers with a legacy encoding convert to / \ . ; or %: those of full width, and the slashes,
// dots and backslashes of the mathematical and small forms.
const lookalikes = "\uff0f\uff3c\uff0e\uff1b\uff05\u2044\u2215\u29f8\u2216\u29f5\u2024\u2025\u2026\ufe52\ufe54\ufe68\ufe6a\u3002\uff61"

// The syscalls of this file.
var (
	NetConnect = NewEffect[NetConnectInput, NetConnectOutput](Syscall{
		Type: "Net.Connect", Domain: Net, Internal: true,
		Description: "An agent with --net kernel connects to a host. The kernel calls it in the agent's name.",
	}, Syscall{
		Type:        "Net.Closed",
		Description: "Records the end of a connection.",
	})

	NetPublish = NewEffect[NetPublishInput, NetPublishOutput](Syscall{
		Type: "Net.Publish", Domain: Net, Internal: true,
		Description: "A port of an agent's network can be reached on the loopback of the kernel's machine. The kernel calls it in the agent's name.",
	}, Syscall{
		Type:        "Net.Withdrawn",
		Description: "Records that a port can no longer be reached.",
	})

	NetRequest = NewEffect[NetRequestInput, NetRequestOutput](Syscall{
		Type: "Net.Request", Domain: Net, Internal: true,
		Description: "An agent makes a request to an upstream. The kernel calls it in the agent's name.",
	}, Syscall{
		Type:        "Net.Answered",
		Description: "Records the outcome of a request to an upstream.",
	})
)
