package hosts_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// step is what a model does in one turn: it uses the tool whose name has this suffix.
type step struct {
	tool   string
	input  any
	before func() // called before the step
}

// model speaks the messages API of Anthropic, the responses and the chat API of OpenAI, and that of Gemini. In the n-th turn it does the n-th step, and
// after the last step it is done.
type model struct {
	t     *testing.T
	url   string
	steps []step

	repeats bool  // it ends with what its last tool said, not with "done"
	tokens  int64 // that it says an answer had; 0: a few

	mu      sync.Mutex
	at      int
	results []string // results of the tools, except for lookups
	keys    []string // of accepted requests
	asked   string   // what the last request has as its conversation, as JSON
	last    string   // request with a conversation, as it came
}

func newModel(t *testing.T, steps ...step) *model {
	t.Helper()
	m := &model{t: t, steps: steps}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

type object = map[string]any

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	var body object
	if err != nil || json.Unmarshal(text, &body) != nil {
		body = object{}
	}
	path := r.URL.Path
	var events []object
	switch {
	case r.Method != http.MethodPost:
		answer(w, object{"data": []any{}, "models": []any{}})
		return
	case strings.Contains(path, "count_tokens"):
		answer(w, object{"input_tokens": 10})
		return
	case strings.HasSuffix(path, "/messages"):
		events = m.anthropic(body)
	case strings.HasSuffix(path, "/chat/completions"):
		events = m.chat(body)
	case strings.HasSuffix(path, "/responses"):
		events = m.openai(body)
	case strings.HasSuffix(path, ":streamGenerateContent"):
		events = m.gemini(body)
	case strings.HasSuffix(path, ":generateContent"):
		answer(w, m.gemini(body)[0])
		return
	default:
		answer(w, object{})
		return
	}
	m.mu.Lock()
	m.last = string(text)
	m.keys = append(m.keys, r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key")+r.Header.Get("Authorization"))
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		data, err := json.Marshal(e)
		if err != nil {
			m.t.Error(err)
		}
		if e["type"] != nil {
			fmt.Fprintf(w, "event: %s\n", e["type"])
		}
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
	if strings.HasSuffix(path, "/chat/completions") {
		fmt.Fprint(w, "data: [DONE]\n\n")
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the test notices a host that has ended
}

// next records the results of the tools, and returns the next step, with the full name of its tool; "" if there is none. searched
// says that the tool was just looked up.
func (m *model) next(offered, results []string, searched bool) (string, any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.results = results
	if len(results) >= len(m.steps) || len(offered) == 0 {
		return "", nil
	}
	s := m.steps[len(results)]
	if m.at == len(results) {
		m.at++
		if s.before != nil {
			s.before()
		}
	}
	for _, name := range offered {
		if strings.HasSuffix(name, s.tool) {
			return name, s.input
		}
	}
	if slices.Contains(offered, toolSearch) && !searched {
		return toolSearch, object{"query": "select:mcp__pwos__" + s.tool, "max_results": 5}
	}
	m.t.Errorf("no tool %s is offered: %q", s.tool, offered)
	return "", nil
}

// end is what the model says at its end.
func (m *model) end(results []string) string {
	if !m.repeats || len(results) == 0 {
		return "done"
	}
	return "done: " + results[len(results)-1]
}

// answered is how many tokens the model says an answer had.
func (m *model) answered() int64 { return max(m.tokens, 5) }

// toolSearch is the tool with which Claude Code looks up tools of servers, which it does not offer at first.
const toolSearch = "ToolSearch"

func list(v any) []any { all, _ := v.([]any); return all }

func text(v any) string { s, _ := v.(string); return s }

// hear keeps a conversation. A text in it is JSON once.
func (m *model) hear(conversation any) {
	text, _ := json.Marshal(conversation)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = string(text)
}

func (m *model) anthropic(body object) []object {
	var offered, results []string
	for _, tool := range list(body["tools"]) {
		offered = append(offered, text(tool.(object)["name"]))
	}
	lookups, searched := map[any]bool{}, false
	for _, message := range list(body["messages"]) {
		for _, part := range list(message.(object)["content"]) {
			part, ok := part.(object)
			if ok && part["type"] == "tool_use" {
				if searched = part["name"] == toolSearch; searched {
					lookups[part["id"]] = true
				}
			}
			if ok && part["type"] == "tool_result" && !lookups[part["tool_use_id"]] {
				content, _ := json.Marshal(part["content"])
				results = append(results, string(content))
			}
		}
	}
	m.hear(body["messages"])
	name, input := m.next(offered, results, searched)
	stop, begin, delta := "end_turn", object{"type": "text", "text": ""}, object{"type": "text_delta", "text": m.end(results)}
	if name != "" {
		given, _ := json.Marshal(input)
		stop = "tool_use"
		begin = object{"type": "tool_use", "id": fmt.Sprint("toolu_", len(results), "_", name), "name": name, "input": object{}}
		delta = object{"type": "input_json_delta", "partial_json": string(given)}
	}
	message := object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []any{}, "stop_reason": nil, "stop_sequence": nil,
		"usage": object{"input_tokens": 10, "output_tokens": 5},
	}
	return []object{
		{"type": "message_start", "message": message},
		{"type": "content_block_start", "index": 0, "content_block": begin},
		{"type": "content_block_delta", "index": 0, "delta": delta},
		{"type": "content_block_stop", "index": 0},
		{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": object{"output_tokens": m.answered()}},
		{"type": "message_stop"},
	}
}

func (m *model) openai(body object) []object {
	var offered, results []string
	spaces := map[string]any{}
	for _, tool := range list(body["tools"]) {
		tool := tool.(object)
		inner := list(tool["tools"])
		if inner == nil {
			offered = append(offered, text(tool["name"]))
		}
		for _, one := range inner {
			name := text(one.(object)["name"])
			offered = append(offered, name)
			spaces[name] = tool["name"]
		}
	}
	for _, item := range list(body["input"]) {
		if item, ok := item.(object); ok && item["type"] == "function_call_output" {
			output, _ := json.Marshal(item["output"])
			results = append(results, string(output))
		}
	}
	item := object{
		"type": "message", "id": "m_1", "role": "assistant", "status": "completed",
		"content": []any{object{"type": "output_text", "text": m.end(results), "annotations": []any{}}},
	}
	m.hear(body["input"])
	if name, input := m.next(offered, results, false); name != "" {
		given, _ := json.Marshal(input)
		item = object{
			"type": "function_call", "id": fmt.Sprint("fc_", len(results)), "call_id": fmt.Sprint("call_", len(results)),
			"name": name, "arguments": string(given), "status": "completed",
		}
		if spaces[name] != nil {
			item["namespace"] = spaces[name]
		}
	}
	response := func(status string, output ...any) object {
		return object{
			"id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": "x", "output": append([]any{}, output...),
			"usage": object{
				"input_tokens": 1, "output_tokens": m.answered(), "total_tokens": 1 + m.answered(),
				"input_tokens_details": object{"cached_tokens": 0}, "output_tokens_details": object{"reasoning_tokens": 0},
			},
		}
	}
	return []object{
		{"type": "response.created", "response": response("in_progress")},
		{"type": "response.output_item.done", "output_index": 0, "item": item},
		{"type": "response.completed", "response": response("completed", item)},
	}
}

func (m *model) chat(body object) []object {
	var offered, results []string
	for _, tool := range list(body["tools"]) {
		function, _ := tool.(object)["function"].(object)
		offered = append(offered, text(function["name"]))
	}
	for _, message := range list(body["messages"]) {
		if message := message.(object); message["role"] == "tool" {
			output, _ := json.Marshal(message["content"])
			results = append(results, string(output))
		}
	}
	delta, reason := object{"role": "assistant", "content": m.end(results)}, "stop"
	if name, input := m.next(offered, results, false); name != "" {
		given, _ := json.Marshal(input)
		call := object{"index": 0, "id": fmt.Sprint("call_", len(results)), "type": "function", "function": object{"name": name, "arguments": string(given)}}
		delta, reason = object{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
	}
	chunk := func(delta object, reason any) object {
		return object{
			"id": "c_1", "object": "chat.completion.chunk", "created": 1, "model": "x",
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": reason}},
			"usage":   object{"prompt_tokens": 1, "completion_tokens": m.answered(), "total_tokens": 1 + m.answered()},
		}
	}
	return []object{chunk(delta, nil), chunk(object{}, reason)}
}

func (m *model) gemini(body object) []object {
	var offered, results []string
	for _, tool := range list(body["tools"]) {
		for _, one := range list(tool.(object)["functionDeclarations"]) {
			offered = append(offered, text(one.(object)["name"]))
		}
	}
	for _, content := range list(body["contents"]) {
		for _, part := range list(content.(object)["parts"]) {
			if response, ok := part.(object)["functionResponse"].(object); ok {
				output, _ := json.Marshal(response["response"])
				results = append(results, string(output))
			}
		}
	}
	part := object{"text": m.end(results)}
	if config, _ := body["generationConfig"].(object); config["responseMimeType"] == "application/json" { // it wants to know which model it should use, or who speaks next
		part["text"] = `{"reasoning":"done","model_choice":"pro","complexity_score":1,"complexity_reasoning":"done","next_speaker":"user"}`
	}
	if name, input := m.next(offered, results, false); name != "" {
		part = object{"functionCall": object{"name": name, "args": input}}
	}
	return []object{{
		"candidates":    []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}}}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": m.answered(), "totalTokenCount": 1 + m.answered()},
	}}
}

// whole returns the last request.
func (m *model) whole() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// expect compares the results of the tools with want, of which each result must contain one text.
func (m *model) expect(out string, want ...string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.results) != len(want) {
		m.t.Fatalf("the tools gave %d results, want %d: %q\n%s", len(m.results), len(want), m.results, out)
	}
	for i, part := range want {
		if !strings.Contains(m.results[i], part) {
			m.t.Errorf("%d: %s gave %s, want %q\n%s", i, m.steps[i].tool, m.results[i], part, out)
		}
	}
}

// keyed fails the test if the model got a request with another key.
func (m *model) keyed(want string) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range m.keys {
		if key != want {
			m.t.Errorf("the model was asked with the key %q, want %q", key, want)
		}
	}
	if len(m.keys) == 0 {
		m.t.Error("the model was not asked")
	}
}
