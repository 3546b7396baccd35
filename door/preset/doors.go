package preset

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/door/hook"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/quote"
)

// Doors connect a host to the kernel. What stands for them in a declaration:
//
//	{{home}}         the path of the host's home; {{home:json}} as the inside of a JSON text
//	{{mcp}}          the MCP server pwos, as JSON: type, command, args, env
//	{{mcp.command}}  its parts, as JSON, {{mcp.args}}, {{mcp.env}}, and {{mcp.argv}}, which is command and args
//	{{hooks}}        the hooks of all events of the host, as JSON: by the event's name, a list with one
//	{{ask}}          the command that asks, as JSON: a list of words; {{ask.shell}} for a shell, which denies if it is missing or dies
//	{{tell}}         the command that tells; {{tell.shell}} for a shell
//	{{late}}         the milliseconds after which the command that asks is too late
type Doors struct {
	Server []string    // the command of the MCP server
	Hook   []string    // the command of the hook
	Env    [][2]string // variables of both
	Home   string
	Mail   bool // the host's model hears of mail at the end of a turn
	// Attended: a person is there, so that a question may wait for as long as the host waits for its hook.
	Attended bool
	// Trusted are the directories about which the host need not ask whether their settings may run something: what they run is as confined as
	// the host.
	Trusted []string
}

// Start is how a host is started.
type Start struct {
	Args  []string // precede the user's
	Env   map[string]string
	Files map[string]string // below its home
}

// Start returns how the host is started with doors.
func (h *Host) Start(d *Doors) (s Start, err error) {
	values := d.values(h)
	fill := func(text string) string {
		return placeholder().ReplaceAllStringFunc(text, func(word string) string {
			value, known := values[strings.Trim(word, "{}")]
			if !known && err == nil {
				err = fmt.Errorf("preset %s: %s stands for nothing", h.Name, word)
			}
			return value
		})
	}
	for _, arg := range h.Args {
		s.Args = append(s.Args, fill(arg))
	}
	s.Env, s.Files = make(map[string]string), make(map[string]string)
	for name, text := range h.Env {
		s.Env[name] = fill(text)
	}
	for name, text := range h.Files {
		s.Files[name] = fill(text)
	}
	return s, err
}

var placeholder = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{\{[A-Za-z.:]+\}\}`) })

// values returns what stands for what in the declaration of a host.
func (d *Doors) values(h *Host) map[string]string {
	var env []string
	for _, one := range d.Env {
		env = append(env, jsonText(one[0])+":"+jsonText(one[1]))
	}
	var hooks []string
	if h.entry != nil {
		events := h.Events
		if d.Mail && h.TurnEnd != "" {
			events = append(slices.Clip(events), h.TurnEnd)
		}
		for _, event := range events {
			hooks = append(hooks, jsonText(event)+":["+h.entry(event, newHookCommand(event, d.Hook, d.Env, d.waits(h)))+"]")
		}
	}
	asks, tells := newHookCommand(hook.PreToolUse, d.Hook, d.Env, d.waits(h)), newHookCommand(hook.PostToolUse, d.Hook, d.Env, d.waits(h))
	all := map[string]string{
		"home": d.Home, "home:json": jsonText(d.Home)[1 : len(jsonText(d.Home))-1],
		"mcp.command": jsonText(d.Server[0]), "mcp.args": jsonList(d.Server[1:]), "mcp.argv": jsonList(d.Server), "mcp.env": "{" + strings.Join(env, ",") + "}",
		"hooks": "{" + strings.Join(hooks, ",") + "}",
		"ask":   jsonList(asks.words), "ask.shell": jsonText(asks.shell()),
		"tell": jsonList(tells.words), "tell.shell": jsonText(tells.shell()),
		"late": strconv.FormatInt((asks.time - hook.Margin/2).Milliseconds(), 10),
	}
	all["mcp"] = `{"type":"stdio","command":` + all["mcp.command"] + `,"args":` + all["mcp.args"] + `,"env":` + all["mcp.env"] + "}"
	if h.more != nil {
		maps.Copy(all, h.more(d))
	}
	return all
}

// Entry returns the hook of the host for an event, as an element of the list in its settings: JSON. command runs "pwos hook run".
func (h *Host) Entry(event string, command []string, env [][2]string) string {
	return h.entry(event, newHookCommand(event, command, env, hook.HostTime))
}

// waits returns how long the host waits for a hook that asks.
func (d *Doors) waits(h *Host) time.Duration {
	if d.Attended {
		return max(h.Waits, hook.HostTime)
	}
	return hook.HostTime
}

// hookCommand is the command of a hook.
type hookCommand struct {
	asks  bool
	words []string
	time  time.Duration // that the host gives it
}

// newHookCommand returns the command of a hook for an event. If it asks, the host waits for it that long.
func newHookCommand(event string, command []string, env [][2]string, waits time.Duration) *hookCommand {
	c := &hookCommand{asks: hook.Asks(event), time: hook.HostTime}
	if len(env) > 0 {
		c.words = append(c.words, "/usr/bin/env")
	}
	for _, one := range env {
		c.words = append(c.words, one[0]+"="+one[1])
	}
	c.words = append(c.words, command...)
	switch {
	case !c.asks:
		c.words = append(c.words, "--tell")
	case waits > hook.HostTime:
		c.time = waits
		c.words = append(c.words, "--wait", (waits - hook.Margin).String())
	}
	return c
}

// shell returns the command for a shell. If a program that asks is missing or dies, it denies.
func (c *hookCommand) shell() string {
	text := quote.Line(c.words...)
	if c.asks {
		text += " || { echo 'pwos: the tool was not allowed' >&2; exit 2; }"
	}
	return text
}

// seconds returns the time that the host gives it.
func (c *hookCommand) seconds() int { return int(c.time / time.Second) }

// everyTool returns an element of settings in which a hook is for all tools, with the time that it has.
func everyTool(members string) string {
	return `{"matcher":"*","hooks":[{"type":"command",` + members + `}]}`
}

func jsonText(s string) string { return string(schema.AppendString(nil, s)) }

func jsonList(words []string) string {
	list := make([]string, 0, len(words))
	for _, word := range words {
		list = append(list, jsonText(word))
	}
	return "[" + strings.Join(list, ",") + "]"
}

// Keyed returns a shell script that gives the host what it has where the kernel has the key of its model: that of the first upstream that
// there is. Variables that are set stay.
func (h *Host) Keyed() string {
	var b strings.Builder
	for i, u := range h.Upstreams {
		at := "$PWOS_UPSTREAM_" + strings.ToUpper(strings.ReplaceAll(u.Name, "-", "_"))
		word := "if"
		if i > 0 {
			word = "elif"
		}
		fmt.Fprintf(&b, "%s [ -n \"%s\" ]; then\n", word, at)
		for _, name := range slices.Sorted(maps.Keys(u.Env)) {
			parts := strings.Split(u.Env[name], "$url")
			for i, part := range parts {
				if parts[i] = quote.Word(part); part == "" && len(parts) > 1 {
					parts[i] = ""
				}
			}
			fmt.Fprintf(&b, "\t[ -n \"${%s+x}\" ] || %s=%s\n\texport %s\n", name, name, strings.Join(parts, `"`+at+`"`), name)
		}
	}
	if b.Len() > 0 {
		b.WriteString("fi\n")
	}
	return b.String() + h.script
}
