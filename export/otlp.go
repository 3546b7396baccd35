package export

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Names of attributes, by OpenTelemetry's semantic conventions 1.44, and those for generative AI and MCP, which are in
// a repository of their own since 2026.
const (
	attrService       = "service.name"
	attrInstance      = "service.instance.id"
	attrError         = "error.type"
	attrHTTPStatus    = "http.response.status_code"
	attrServer        = "server.address"
	attrPort          = "server.port"
	attrOperation     = "gen_ai.operation.name"
	attrTool          = "gen_ai.tool.name"
	attrToolArguments = "gen_ai.tool.call.arguments"
	attrToolResult    = "gen_ai.tool.call.result"
	attrModel         = "gen_ai.response.model"
	attrInput         = "gen_ai.usage.input_tokens"
	attrOutput        = "gen_ai.usage.output_tokens"
	attrCacheRead     = "gen_ai.usage.cache_read.input_tokens"
	attrCacheCreation = "gen_ai.usage.cache_creation.input_tokens"
	attrMCPMethod     = "mcp.method.name"

	attrRecord    = "pwos.record.id" // instance/epoch/seq
	attrType      = "pwos.type"
	attrPID       = "pwos.pid"
	attrStatus    = "pwos.status"
	attrLink      = "pwos.cause"
	attrUpstream  = "pwos.upstream"
	attrArguments = "pwos.arguments"
	attrResult    = "pwos.result"
)

// OTLP sends records as spans to an OpenTelemetry collector, over HTTP in protobuf. The ids of traces and spans are
// derived from the record, so a span that is sent again is the same span. A call is sent after it has ended.
type OTLP struct {
	*poster
	version string
}

// NewOTLP returns a Sink for the collector at to. A URL without a path means /v1/traces. version is that of the
// exporting program.
func NewOTLP(to Receiver, version string) (*OTLP, error) {
	p, err := newPoster(to, "application/x-protobuf")
	if err != nil {
		return nil, err
	}
	if at, err := url.Parse(p.URL); err == nil && (at.Path == "" || at.Path == "/") {
		at.Path = "/v1/traces"
		p.URL = at.String()
	}
	return &OTLP{p, version}, nil
}

// Deliver implements Sink. It returns an error if the collector rejects a part of the spans, which is lost.
func (o *OTLP) Deliver(ctx context.Context, batch []*Record) error {
	body, err := proto.Marshal(o.traces(batch))
	if err != nil {
		return fmt.Errorf("write spans: %w", err)
	}
	answer, err := o.post(ctx, body)
	if err == nil {
		err = rejected(answer)
	}
	if err != nil {
		return fmt.Errorf("deliver %s to %s: %w", batch[0].ID(), batch[len(batch)-1].ID(), err)
	}
	return nil
}

// traces returns a request of OTLP: TracesData has the same encoding.
func (o *OTLP) traces(batch []*Record) *trace.TracesData {
	all := new(trace.TracesData)
	for begin := 0; begin < len(batch); {
		end := begin + 1
		for end < len(batch) && batch[end].At.Instance == batch[begin].At.Instance {
			end++
		}
		var spans []*trace.Span
		for _, r := range batch[begin:end] {
			if r.Entry.Status != schema.StatusRunning {
				spans = append(spans, spanOf(r))
			}
		}
		all.ResourceSpans = append(all.ResourceSpans, &trace.ResourceSpans{
			Resource:   &resource.Resource{Attributes: []*common.KeyValue{text(attrService, "pwos"), text(attrInstance, batch[begin].At.Instance)}},
			ScopeSpans: []*trace.ScopeSpans{{Scope: &common.InstrumentationScope{Name: "github.com/promptware-os/pwos/export", Version: o.version}, Spans: spans}},
		})
		begin = end
	}
	return all
}

// rejected returns an error if a collector's answer, an ExportTraceServiceResponse, has rejected spans: member 1 is the
// partial success, with their number as member 1 and the reason as member 2. A warning alone is not an error.
func rejected(answer []byte) error {
	partial, _, err := members(answer)
	if err != nil || partial == nil {
		return err
	}
	message, count, err := members(partial)
	if err == nil && count > 0 {
		err = fault.ExportRefused.New("the receiver rejected %d of the spans: %.*q", count, shownAnswer, message)
	}
	return err
}

// members returns members 1 and 2 of a message, if present: the last one of bytes, and the last one that is a number.
func members(message []byte) (data []byte, number uint64, err error) {
	for len(message) > 0 {
		field, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, 0, errAnswer
		}
		message = message[n:]
		switch {
		case field <= 2 && kind == protowire.BytesType:
			data, n = protowire.ConsumeBytes(message)
		case field <= 2 && kind == protowire.VarintType:
			number, n = protowire.ConsumeVarint(message)
		default:
			n = protowire.ConsumeFieldValue(field, kind, message)
		}
		if n < 0 {
			return nil, 0, errAnswer
		}
		message = message[n:]
	}
	return data, number, nil
}

var errAnswer = errors.New("the receiver's answer is not OTLP's")

// spanOf converts a record to a span. The trace is the correlation, and the parent the message that caused it. A cause
// that only the message names is a link, not the parent. A call without a correlation has a trace of its own.
func spanOf(r *Record) *trace.Span {
	e := &r.Entry
	begin, end := time.UnixMilli(e.Time), time.UnixMilli(e.Time)
	if took := time.Duration(e.LatencyUS) * time.Microsecond; e.Intent != 0 {
		begin = end.Add(-took) // the time of the entry is that of the end
	} else {
		end = begin.Add(took)
	}
	s := &trace.Span{
		TraceId: hashOf(16, r.At.Instance, "message", e.ID), SpanId: spanID(r, e.ID), Name: e.Type, Kind: trace.Span_SPAN_KIND_INTERNAL,
		StartTimeUnixNano: uint64(begin.UnixNano()), EndTimeUnixNano: uint64(end.UnixNano()),
		Attributes: []*common.KeyValue{text(attrRecord, r.ID()), text(attrType, e.Type), number(attrPID, e.PID), text(attrStatus, e.Status)},
	}
	if e.Correlation != "" {
		s.TraceId = hashOf(16, r.At.Instance, "correlation", string(e.Correlation))
	}
	switch {
	case e.Claimed:
		s.Links = []*trace.Span_Link{{TraceId: s.TraceId, SpanId: spanID(r, string(e.Causation)), Attributes: []*common.KeyValue{text(attrLink, "claimed")}}}
	case e.Causation != "":
		s.ParentSpanId = spanID(r, string(e.Causation))
	}
	if !e.Success {
		s.Status = &trace.Status{Code: trace.Status_STATUS_CODE_ERROR, Message: string(e.Error)}
		if e.ErrorID != "" {
			s.Attributes = append(s.Attributes, text(attrError, e.ErrorID))
		}
	}
	addFacts(s, &r.Facts)
	addArguments(s, r)
	return s
}

// addFacts adds the object of a call as attributes and in the name of the span.
func addFacts(s *trace.Span, f *Facts) {
	add := func(all ...*common.KeyValue) { s.Attributes = append(s.Attributes, all...) }
	switch {
	case f.MCP != "":
		s.Name, s.Kind = "tools/call "+f.Tool, trace.Span_SPAN_KIND_CLIENT
		add(text(attrMCPMethod, "tools/call"), text(attrOperation, "execute_tool"), text(attrTool, f.Tool))
	case f.Tool != "":
		s.Name = "execute_tool " + f.Tool
		add(text(attrOperation, "execute_tool"), text(attrTool, f.Tool))
	case f.Usage != nil:
		s.Name, s.Kind = "chat "+f.Usage.Model, trace.Span_SPAN_KIND_CLIENT
		add(text(attrOperation, "chat"), text(attrModel, f.Usage.Model), number(attrInput, f.Usage.Input), number(attrOutput, f.Usage.Output))
		if f.Usage.CachedRead > 0 {
			add(number(attrCacheRead, f.Usage.CachedRead))
		}
		if f.Usage.CachedWrite > 0 {
			add(number(attrCacheCreation, f.Usage.CachedWrite))
		}
	}
	if f.Upstream != "" {
		add(text(attrUpstream, f.Upstream))
	}
	if f.Status != 0 {
		s.Kind = trace.Span_SPAN_KIND_CLIENT
		add(number(attrHTTPStatus, f.Status))
	}
	if f.Server != "" {
		s.Kind = trace.Span_SPAN_KIND_CLIENT
		add(text(attrServer, f.Server), number(attrPort, f.Port))
	}
}

// addArguments adds the arguments and the reply of a call, if the record has them.
func addArguments(s *trace.Span, r *Record) {
	given, answered := attrArguments, attrResult
	if r.Facts.Tool != "" {
		given, answered = attrToolArguments, attrToolResult
	}
	if len(r.Entry.Request) > 0 {
		s.Attributes = append(s.Attributes, text(given, string(r.Entry.Request)))
	}
	if len(r.Entry.Payload) > 0 {
		s.Attributes = append(s.Attributes, text(answered, string(r.Entry.Payload)))
	}
}

// spanID returns the span id of a message in the same journal. Clients choose the ids of messages: two messages with
// one id have one span id.
func spanID(r *Record, message string) []byte { return hashOf(8, r.At.Instance, "span", message) }

// hashOf returns the first n bytes of a hash of texts, which are never all zeros, as OTLP requires of ids.
func hashOf(n int, texts ...string) []byte {
	h := sha256.New()
	for _, t := range texts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(t), t) // a hash returns no errors
	}
	return slices.Clip(h.Sum(nil)[:n])
}

func text(name, value string) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
}

func number(name string, value int64) *common.KeyValue {
	return &common.KeyValue{Key: name, Value: &common.AnyValue{Value: &common.AnyValue_IntValue{IntValue: value}}}
}
