package actors_test

import (
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// answered is a model's prediction of an answer: everything except for its id and time.
type answered struct {
	Dialect     schema.Dialect
	Kind        schema.Kind
	Type        string
	Data        string // of a reply
	Code        string // of an error
	Causation   string
	Correlation string
}

// request is what a frame is built from.
type request struct {
	dialect     schema.Dialect
	id          string
	correlation string
	link        *link
}

// line returns a frame with the metadata of r.
func (r request) line(k schema.Kind, typ, data string) string {
	m := schema.Message{Dialect: r.dialect, Kind: k, Type: typ, Data: []byte(data)}
	m.Meta = schema.Metadata{Present: true, ID: r.id, Timestamp: 1, Correlation: r.correlation}
	return strings.TrimSuffix(string(schema.AppendMessage(nil, &m)), "\n")
}

func (r request) reply(typ, data string) *answered {
	return &answered{Dialect: r.dialect, Kind: schema.KindReply, Type: typ, Data: data, Causation: r.id, Correlation: r.correlation}
}

func (r request) failure(typ, number, word string) *answered {
	a := &answered{Dialect: r.dialect, Kind: schema.KindError, Type: typ, Code: number, Causation: r.id, Correlation: r.correlation}
	if r.dialect == schema.OsEvent {
		a.Code = word
	}
	return a
}

// nameless returns the failure of a frame without a recognizable dialect, type and id.
func (r request) nameless(number, word string) *answered {
	return request{dialect: r.link.dialect}.failure("Validation.Failed", number, word)
}

// A sort of frame: what is sent, and what must come back; nil: nothing.
type sort struct {
	name string
	make func(r request) (line string, want *answered)
}

const (
	pingType = "Syscall.Ping"
	echoType = "Syscall.Echo"
)

// sorts are frames of every kind that a connection handles differently.
var sorts = []sort{
	{"query", func(r request) (string, *answered) {
		return r.line(schema.KindQuery, pingType, `{"payload":[1.50,"\u00e9"]}`), r.reply(pingType, `{"payload":[1.50,"\u00e9"]}`)
	}},
	{"command", func(r request) (string, *answered) {
		return r.line(schema.KindCommand, echoType, `{"message":"m"}`), r.reply(echoType, `{"echo":"m"}`)
	}},
	{"refusal", func(r request) (string, *answered) {
		return r.line(schema.KindCommand, echoType, `{"message":"refuse"}`), r.failure(echoType, "409", "CONFLICT")
	}},
	{"failure", func(r request) (string, *answered) {
		return r.line(schema.KindCommand, echoType, `{"message":"fail"}`), r.failure(echoType, "500", "INTERNAL_ERROR")
	}},
	{"panic", func(r request) (string, *answered) {
		return r.line(schema.KindCommand, echoType, `{"message":"panic"}`), r.failure(echoType, "500", "INTERNAL_ERROR")
	}},
	{"event", func(r request) (string, *answered) { return r.line(schema.KindEvent, "Some.Thing", "1"), nil }},
	{"stray reply", func(r request) (string, *answered) {
		return r.line(schema.KindReply, pingType, "1"), r.failure(pingType, "422", "SCHEMA_VIOLATION")
	}},
	{"stray error", func(r request) (string, *answered) {
		return r.line(schema.KindError, pingType, "1"), r.failure(pingType, "422", "SCHEMA_VIOLATION")
	}},
	{"unknown", func(r request) (string, *answered) {
		return r.line(schema.KindQuery, "Nobody.Knows", "{}"), r.failure("Nobody.Knows", "404", "NOT_FOUND")
	}},
	{"wrong kind", func(r request) (string, *answered) {
		return r.line(schema.KindCommand, pingType, `{"payload":1}`), r.failure(pingType, "422", "SCHEMA_VIOLATION")
	}},
	{"bad data", func(r request) (string, *answered) {
		return r.line(schema.KindCommand, echoType, `{"message":1}`), r.failure(echoType, "422", "INVALID_INPUT")
	}},
	{"bad event", func(r request) (string, *answered) {
		return r.line(schema.KindEvent, "not a type", "1"), r.failure("Validation.Failed", "422", "SCHEMA_VIOLATION")
	}},
	{"no JSON", func(r request) (string, *answered) { return `{"kind":`, r.nameless("400", "INVALID_JSON") }},
	{"no object", func(r request) (string, *answered) { return `[1]`, r.nameless("422", "SCHEMA_VIOLATION") }},
	{"too long", func(r request) (string, *answered) {
		return r.line(schema.KindQuery, pingType, `{"payload":"`+strings.Repeat("x", r.link.limit)+`"}`), r.nameless("413", "LINE_TOO_LONG")
	}},
	{"no metadata", func(r request) (string, *answered) {
		line := r.line(schema.KindQuery, pingType, `{"payload":1}`)
		line, _, _ = strings.Cut(line, `,"metadata"`)
		bare := request{dialect: r.dialect}
		if r.dialect == schema.OsEvent {
			return line + "}", bare.reply(pingType, `{"payload":1}`)
		}
		return line + "}", bare.failure(pingType, "422", "SCHEMA_VIOLATION")
	}},
	{"blank", func(request) (string, *answered) { return " \t", nil }},
}

// seen returns the part of an answer that a model predicts.
func (a answer) seen() answered {
	s := answered{
		Dialect: a.Dialect, Kind: a.Kind, Type: a.Type, Code: a.Code,
		Causation: a.Meta.Causation, Correlation: a.Meta.Correlation,
	}
	if a.Kind == schema.KindReply {
		s.Data = string(a.Data)
	}
	return s
}
