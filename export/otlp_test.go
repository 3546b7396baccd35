package export_test

import (
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/promptware-os/pwos/export"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// collect delivers records to a collector that answers with answer, and returns the received spans.
func collect(t *testing.T, answer []byte, records ...*export.Record) ([]*trace.Span, error) {
	t.Helper()
	var spans []*trace.Span
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got trace.TracesData
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/x-protobuf" || proto.Unmarshal(body, &got) != nil {
			t.Errorf("a request to %s of %s", r.URL, r.Header)
		}
		for _, of := range got.ResourceSpans {
			for _, in := range of.ScopeSpans {
				spans = append(spans, in.Spans...)
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		_, _ = w.Write(answer)
	}))
	defer server.Close()
	o, err := export.NewOTLP(export.Receiver{URL: server.URL, Patience: time.Minute, Notice: func(string) {}}, "v1")
	testkit.Must(t, err)
	err = o.Deliver(t.Context(), records)
	testkit.Must(t, o.Close())
	return spans, err
}

// attributes returns the attributes of a span as text.
func attributes(s *trace.Span) map[string]string {
	all := make(map[string]string)
	for _, a := range s.Attributes {
		all[a.Key] = strings.Trim(a.Value.String(), "\n ")
		if v := a.Value.GetStringValue(); v != "" {
			all[a.Key] = v
		}
	}
	return all
}

// TestOTLP: a trace is a correlation, a parent the cause, and an effect lasts until its end.
func TestOTLP(t *testing.T) {
	t.Parallel()
	cause := entryAt(41)
	cause.Entry.ID, cause.Entry.LatencyUS = "m-0", 250
	effect := entryAt(43)
	effect.Entry = schema.AuditEntry{
		Type: "Http.Fetch", PID: 7, Time: 1735000001000, ID: "m-2", Correlation: cause.Entry.Correlation, Causation: "m-0", LatencyUS: 1_000_000, Intent: 42,
		Status: "failed", Error: "upstream failed", ErrorID: "http.failed", Seq: 43,
	}
	effect.Facts.Status = 502
	running := entryAt(44)
	running.Entry.Status = schema.StatusRunning
	alone := entryAt(45)
	alone.Entry.Correlation, alone.Entry.ID = "", "m-3"
	spans, err := collect(t, nil, cause, effect, running, alone)
	testkit.Must(t, err)
	if len(spans) != 3 {
		t.Fatalf("%d spans, want 3: a call in flight has none", len(spans))
	}
	a, b, c := spans[0], spans[1], spans[2]
	if hex.EncodeToString(a.TraceId) != hex.EncodeToString(b.TraceId) || hex.EncodeToString(a.TraceId) == hex.EncodeToString(c.TraceId) {
		t.Error("a trace is not a correlation")
	}
	if hex.EncodeToString(b.ParentSpanId) != hex.EncodeToString(a.SpanId) || a.ParentSpanId != nil || len(a.SpanId) != 8 || len(a.TraceId) != 16 {
		t.Error("a parent is not the cause")
	}
	if a.StartTimeUnixNano != 1735000000123e6 || a.EndTimeUnixNano-a.StartTimeUnixNano != 250e3 || b.StartTimeUnixNano != 1735000000000e6 || b.EndTimeUnixNano != 1735000001000e6 {
		t.Errorf("times are %d to %d, and %d to %d", a.StartTimeUnixNano, a.EndTimeUnixNano, b.StartTimeUnixNano, b.EndTimeUnixNano)
	}
	if b.Status.GetCode() != trace.Status_STATUS_CODE_ERROR || b.Status.Message != "upstream failed" || a.Status != nil {
		t.Errorf("status %v, and of an error %v", a.Status, b.Status)
	}
	want := map[string]string{
		"pwos.record.id": "0123456789abcdef/2/43", "pwos.type": "Http.Fetch", "pwos.pid": "int_value:7", "pwos.status": "failed",
		"error.type": "http.failed", "http.response.status_code": "int_value:502",
	}
	if diff := cmp.Diff(want, attributes(b)); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
	again, err := collect(t, nil, cause)
	testkit.Must(t, err)
	if !proto.Equal(again[0], a) {
		t.Error("a span that is sent again is another span")
	}
}

// TestConventions: attributes of tools, MCP servers and models have the names of OpenTelemetry's conventions.
func TestConventions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		facts export.Facts
		name  string
		want  map[string]string
	}{
		{export.Facts{Tool: "write_file", MCP: "fs"}, "tools/call write_file", map[string]string{"mcp.method.name": "tools/call", "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "write_file", "gen_ai.tool.call.arguments": `{"a":1}`, "gen_ai.tool.call.result": "2"}},
		{export.Facts{Tool: "Bash", Host: "claude"}, "execute_tool Bash", map[string]string{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "Bash", "gen_ai.tool.call.arguments": `{"a":1}`, "gen_ai.tool.call.result": "2"}},
		{
			export.Facts{Upstream: "openai", Usage: &schema.NetUsage{Model: "m", Input: 3, Output: 4, CachedRead: 1}},
			"chat m",
			map[string]string{"pwos.upstream": "openai", "gen_ai.operation.name": "chat", "gen_ai.response.model": "m", "gen_ai.usage.input_tokens": "int_value:3", "gen_ai.usage.output_tokens": "int_value:4", "gen_ai.usage.cache_read.input_tokens": "int_value:1", "pwos.arguments": `{"a":1}`, "pwos.result": "2"},
		},
		{export.Facts{Server: "api.test", Port: 443}, "Memory.Set", map[string]string{"server.address": "api.test", "server.port": "int_value:443", "pwos.arguments": `{"a":1}`, "pwos.result": "2"}},
	} {
		r := entryAt(1)
		r.Facts, r.Entry.Request, r.Entry.Payload = tt.facts, schema.Value(`{"a":1}`), schema.Value("2")
		spans, err := collect(t, nil, r)
		testkit.Must(t, err)
		got := attributes(spans[0])
		for _, always := range []string{"pwos.record.id", "pwos.type", "pwos.pid", "pwos.status"} {
			delete(got, always)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || spans[0].Name != tt.name {
			t.Errorf("%s: attributes (-want +got):\n%s", spans[0].Name, diff)
		}
	}
}

// TestPartialSuccess: rejected spans end the export; a warning does not.
func TestPartialSuccess(t *testing.T) {
	t.Parallel()
	partial := func(rejected uint64, message string) []byte {
		in := protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), rejected)
		in = protowire.AppendString(protowire.AppendTag(in, 2, protowire.BytesType), message)
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), in)
	}
	for name, tt := range map[string]struct {
		answer []byte
		want   string
	}{
		"nothing":   {nil, ""},
		"a warning": {partial(0, "old version"), ""},
		"rejected":  {partial(2, "too old"), `the receiver rejected 2 of the spans: "too old"`},
		"nonsense":  {[]byte("<html>"), "the receiver's answer is not OTLP's"},
	} {
		_, err := collect(t, tt.answer, entryAt(1))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: got error %v, want %q", name, err, tt.want)
		}
		if name == "rejected" && !errors.Is(err, fault.ExportRefused) {
			t.Errorf("%v is not %s", err, fault.ExportRefused)
		}
	}
}
