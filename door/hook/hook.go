// Package hook parses the input of the hooks that an agent host runs when it uses its tools.
package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/schema"
)

// Longest is the longest hook input, in bytes.
const Longest = 32 << 20

// Bounds of the recorded input of a tool, in bytes. An input of at most longText bytes is recorded in full. In a longer one, members
// longer than longText are cut. If it is still longer than longInput, only its digest is recorded.
const (
	longText  = 2 << 10
	longInput = 10 << 10
)

// longPrompt bounds a prompt, in bytes: of a longer one the beginning is told.
const longPrompt = 60 << 10

// HostTime is the time limit that a host is to give its hook. It is longer than that of the hook, which denies before the host gives up.
const HostTime = 60 * time.Second

// Margin is how much sooner than the host a hook that asks gives up.
const Margin = 5 * time.Second

// The events of hosts. All use the same form: an object with hook_event_name and session_id, and of a tool with tool_name, tool_input and,
// if the host has a name for the use, tool_use_id.
const (
	PreToolUse         = "PreToolUse"
	PostToolUse        = "PostToolUse"
	PostToolUseFailure = "PostToolUseFailure"
	PostToolBatch      = "PostToolBatch" // of Claude Code: all tools that one answer of the model used have ended
	UserPromptSubmit   = "UserPromptSubmit"
	SessionEnd         = "SessionEnd"
	Stop               = "Stop"            // the model has answered, and the turn ends unless the hook has something for it
	PreModelRequest    = "PreModelRequest" // of Codex
	Interrupt          = "Interrupt"       // of Codex
	BeforeTool         = "BeforeTool"      // this and the following ones of Gemini CLI
	AfterTool          = "AfterTool"
	BeforeModel        = "BeforeModel"
	BeforeAgent        = "BeforeAgent"
)

// Asks reports whether a hook for an event asks. The others tell, and deny nothing.
func Asks(event string) bool { return event == PreToolUse || event == BeforeTool }

// Dialect is what a host has of its own. The zero Dialect is that of Codex.
type Dialect struct {
	Failures bool   // it has an event of its own for a tool that failed, so that the other one says that none has
	Server   string // what precedes the names of the tools of the MCP server pwos; "": mcp__pwos__, or it names the server apart
	JSON     bool   // it hears why a tool is denied from standard output, as JSON
}

// every stands for all uses of tools in Step.End.
const every = "*"

// Question is the input of a hook, as the calls that it stands for. All are nil for an event that the kernel need not know.
type Question struct {
	Use   *schema.ToolUseInput // before a tool is used; Begin then follows if it may be used
	Begin *schema.StepBeginInput
	End   *schema.StepEndInput // after it, or when no tool can be in use any more

	Prompt *schema.PromptSubmitInput // when the user has asked for something; with End

	Turn bool // the turn ends: mail that came meanwhile is for the model; with End

	// Event is the name of an event of a tool that was used, whose answer the model gets with the tool's result; "" for others.
	Event string
}

// Read parses the hook input of a host. A question without a name of its event is one about a tool. With an error, the question is nil
// unless its event is one that denies nothing.
func Read(host string, d Dialect, r io.Reader) (*Question, error) {
	text, err := io.ReadAll(io.LimitReader(r, Longest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read question: %w", err)
	case len(text) > Longest:
		return nil, fmt.Errorf("it is longer than %d bytes", Longest)
	case !schema.Valid(text):
		return nil, errors.New("it is not one strict JSON value")
	}
	question, err := members(text)
	if err != nil {
		return nil, err
	}
	event := PreToolUse
	if question["hook_event_name"] != nil {
		if event, err = str(question, "hook_event_name"); err != nil {
			return nil, err
		}
	}
	switch event {
	case PreToolUse, BeforeTool:
		return d.before(host, question)
	case PostToolUse, PostToolUseFailure, AfterTool:
		return d.after(host, event, question)
	case PostToolBatch, UserPromptSubmit, SessionEnd, Stop, PreModelRequest, Interrupt, BeforeModel, BeforeAgent:
		// The host tells nothing more of a tool that was interrupted or not permitted, and Codex nothing of a patch.
		session, err := thread(question)
		if err != nil {
			return new(Question), err
		}
		q := &Question{End: &schema.StepEndInput{Host: host, Session: session, Tool: every}, Turn: event == Stop}
		if text, err := str(question, "prompt"); (event == UserPromptSubmit || event == BeforeAgent) && err == nil && text != "" {
			q.Prompt = &schema.PromptSubmitInput{Host: host, Session: session, Text: clip.Text(text, longPrompt)}
		}
		return q, nil
	}
	return new(Question), nil
}

// before returns the calls of a tool that is about to be used.
func (d Dialect) before(host string, question map[string]schema.Value) (*Question, error) {
	session, err := str(question, "session_id")
	if err != nil {
		return nil, err
	}
	tool, err := d.tool(question)
	if err != nil {
		return nil, err
	}
	input := question["tool_input"]
	if input == nil {
		return nil, errors.New("tool_input is missing")
	}
	kept, cut := Short(input)
	in := &schema.ToolUseInput{Host: host, Session: session, Use: use(question), Tool: tool, Input: kept, Cut: cut}
	if cwd, err := str(question, "cwd"); err == nil && len(cwd) <= 4096 { // a host may leave it out
		in.Cwd = cwd
	}
	if err := in.Check(); err != nil {
		return nil, err
	}
	begin := &schema.StepBeginInput{Host: host, Tool: in.Tool, Use: in.Use}
	if begin.Session, err = thread(question); err != nil {
		return nil, err
	}
	begin.InputDigest = new(integrity(input))
	return &Question{Use: in, Begin: begin}, nil
}

// after returns the call of a tool that was used.
func (d Dialect) after(host, event string, question map[string]schema.Value) (*Question, error) {
	session, err := thread(question)
	if err != nil {
		return new(Question), err
	}
	tool, err := d.tool(question)
	if err != nil {
		return new(Question), err
	}
	end := &schema.StepEndInput{Host: host, Session: session, Tool: tool, Use: use(question)}
	if event == PostToolUseFailure || d.Failures {
		end.Failed = new(event == PostToolUseFailure)
	}
	return &Question{End: end, Event: event}, nil
}

// tool returns the name in grants of the tool that is used.
func (d Dialect) tool(question map[string]schema.Value) (string, error) {
	name, err := str(question, "tool_name")
	if err != nil {
		return "", err
	}
	if question["mcp_context"] != nil { // Gemini CLI names the server and its tool apart
		of, err := members(question["mcp_context"])
		if err != nil {
			return "", fmt.Errorf("mcp_context: %w", err)
		}
		server, err := str(of, "server_name")
		if err != nil {
			return "", fmt.Errorf("mcp_context: %w", err)
		}
		tool, err := str(of, "tool_name")
		if err != nil {
			return "", fmt.Errorf("mcp_context: %w", err)
		}
		name = "mcp__" + server + "__" + tool
	} else if tool, ok := strings.CutPrefix(name, d.Server); ok && d.Server != "" {
		name = "mcp__" + schema.OwnServer + "__" + tool
	}
	return schema.HostTool(name), nil
}

// thread returns what uses its tools one answer of the model after the other: a session, or a subagent of it.
func thread(question map[string]schema.Value) (string, error) {
	session, err := str(question, "session_id")
	if err != nil {
		return "", err
	}
	if agent, err := str(question, "agent_id"); err == nil {
		session += "/" + agent
	}
	return bounded(session), nil
}

// use returns what the host calls this use of a tool, nil if it has no name for it.
func use(question map[string]schema.Value) *string {
	id, err := str(question, "tool_use_id")
	if err != nil {
		return nil
	}
	return new(bounded(id))
}

// bounded returns a name that is at most as long as the kernel accepts: of a longer one its digest.
func bounded(name string) string {
	const longest = 256
	if len(name) <= longest {
		return name
	}
	return integrity([]byte(name))
}

func members(raw schema.Value) (map[string]schema.Value, error) {
	decoded, err := schema.TypeOf[map[string]schema.Value]().Decode(raw)
	if err != nil {
		return nil, errors.New("it is not a JSON object")
	}
	return *decoded.(*map[string]schema.Value), nil
}

func str(question map[string]schema.Value, name string) (string, error) {
	if question[name] == nil {
		return "", fmt.Errorf("%s is missing", name)
	}
	decoded, err := schema.TypeOf[string]().Decode(question[name])
	if err != nil || *decoded.(*string) == "" {
		return "", fmt.Errorf("%s is not a string", name)
	}
	return *decoded.(*string), nil
}

// Short returns a tool's input, shortened to fit a line, and the names of the members that were cut, or * for
// the whole input.
func Short(input schema.Value) (kept schema.Value, cut []string) {
	if len(input) <= longText {
		return input, nil
	}
	out := []byte{'{'}
	all, err := members(input)
	if err != nil {
		return digest(input), []string{"*"}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		value := all[name]
		if len(value) > longText {
			value = shortText(value)
			cut = append(cut, name)
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(schema.AppendString(out, name), ':'), value...)
	}
	if out = append(out, '}'); len(out) > longInput {
		return digest(input), []string{"*"}
	}
	return out, cut
}

// shortText returns the beginning of a string with its length and digest; for any other value it returns the digest.
func shortText(value schema.Value) schema.Value {
	decoded, err := schema.TypeOf[string]().Decode(value)
	if err != nil {
		return digest(value)
	}
	text := *decoded.(*string)
	head := text[:longText/2]
	for !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return schema.AppendString(nil, fmt.Sprintf("%s… (%d bytes, SHA-256 %s)", head, len(text), sum([]byte(text))))
}

// digest returns an object with the length in bytes and the SHA-256 of a value.
func digest(value schema.Value) schema.Value {
	return fmt.Appendf(nil, `{"bytes":%d,"sha256":"%s"}`, len(value), sum(value))
}

func integrity(b []byte) string {
	s := sha256.Sum256(b)
	return schema.Integrity(s[:])
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
