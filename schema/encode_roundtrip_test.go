package schema_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// public ignores the unexported fields of a Message: the row that Decode sets.
var public = cmpopts.IgnoreUnexported(schema.Message{})

// texts generates strings that need escapes in JSON, also with invalid UTF-8.
func texts() *rapid.Generator[string] {
	hard := []string{
		"", "plain", `"`, `\`, "\n", "\r\n", "\x00", "\x1b[31m", "\x7f", "\u0080", "\u2028\u2029", "\ufeff", "\ufffd", "\ufffe", "é", "\U0001f600",
		"\xff", "\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "</script>", `\u0041`, `\ud800`, "'", "/", "{}[],:",
	}
	return rapid.OneOf(
		rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.SampledFrom(hard)), func(parts []string) string { return strings.Join(parts, "") }),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
}

// values generates JSON values on one line in many forms.
func values() *rapid.Generator[string] {
	scalar := rapid.OneOf(
		rapid.SampledFrom([]string{"null", "true", "false", "0", "-0", "1e400", "-1E+2", "0.1e-9", "12345678901234567890", `"\ud83d\ude00"`, `"\u0000\/"`, `[ ]`, "{\t}"}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,4})?`),
		rapid.Map(texts(), func(s string) string { return string(schema.AppendString(nil, s)) }),
	)
	return rapid.Custom(func(t *rapid.T) string {
		v := scalar.Draw(t, "scalar")
		for range rapid.IntRange(0, 8).Draw(t, "depth") {
			switch rapid.IntRange(0, 2).Draw(t, "shape") {
			case 0:
				v = "[" + v + " ,\t" + scalar.Draw(t, "element") + "]"
			case 1:
				v = "{" + string(schema.AppendString(nil, texts().Draw(t, "name"))) + " : " + v + "\r}"
			default:
				v = "[\r" + v + "]"
			}
		}
		return v
	})
}

func messages() *rapid.Generator[*schema.Message] {
	return rapid.Custom(func(t *rapid.T) *schema.Message {
		valid := rapid.Map(texts(), func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
		m := &schema.Message{
			Dialect: rapid.SampledFrom(dialects).Draw(t, "dialect"),
			Kind:    rapid.SampledFrom([]schema.Kind{schema.KindCommand, schema.KindQuery, schema.KindEvent, schema.KindReply, schema.KindError}).Draw(t, "kind"),
			Type:    rapid.OneOf(rapid.StringMatching(pattern.String()), rapid.Just("Syscall.Ping")).Draw(t, "type"),
			Data:    []byte(values().Draw(t, "data")),
		}
		if m.Dialect == schema.OsMessage || rapid.Bool().Draw(t, "metadata") {
			m.Meta = schema.Metadata{
				Present:        true,
				ID:             valid.Filter(func(s string) bool { return s != "" }).Draw(t, "id"),
				Timestamp:      rapid.Int64Min(0).Draw(t, "timestamp"),
				Correlation:    valid.Draw(t, "correlation"),
				Causation:      valid.Draw(t, "causation"),
				IdempotencyKey: valid.Draw(t, "idempotency key"),
			}
		}
		return m
	})
}

// TestMessageRoundTrip checks that AppendMessage appends one frame, and that Decode returns the same message (MESSAGE 4.3.1, EVENT
// 4.3.1).
func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := messages().Draw(t, "message")
		line := schema.AppendMessage(nil, m)
		checkLine(t, line)
		for _, fallback := range dialects {
			got, err := schema.Decode(line, fallback)
			if err != nil {
				t.Fatalf("Decode(%q): %v", line, err)
			}
			if diff := cmp.Diff(m, &got, public); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// TestAnswerRoundTrip checks that an answer to any message is one frame in its dialect, refers to its request, and has its own id
// (MESSAGE 4.2.4, MESSAGE 4.2.5, MESSAGE 9.2 #4, and the same of EVENT).
func TestAnswerRoundTrip(t *testing.T) {
	t.Parallel()
	stamps := schema.NewStamper()
	rapid.Check(t, func(t *rapid.T) {
		req := messages().Draw(t, "request")
		st := stamps.Next(schemaTime)
		want := schema.Message{Dialect: req.Dialect, Kind: schema.KindReply, Type: req.Type, Data: []byte(values().Draw(t, "answer")), Meta: schema.Metadata{
			Present: true, ID: string(st.ID[:]), Timestamp: schemaTime.UnixMilli(), Correlation: req.Meta.Correlation, Causation: req.Meta.ID,
		}}
		line := schema.AppendReply(nil, req, want.Data, &st)
		checkLine(t, line)
		got, err := schema.Decode(line, req.Dialect)
		if err != nil {
			t.Fatalf("Decode(%q): %v", line, err)
		}
		if diff := cmp.Diff(want, got, public); diff != "" {
			t.Fatal(diff)
		}

		e := &fault.Fault{Kind: rapid.SampledFrom(classes).Draw(t, "class").class, Message: texts().Draw(t, "message"), Field: texts().Draw(t, "field")}
		if rapid.Bool().Draw(t, "cause") {
			e.Cause = fault.KernelInternal.New("%s", texts().Draw(t, "cause"))
		}
		line = schema.AppendError(nil, req, e, &st)
		checkLine(t, line)
		got, err = schema.Decode(line, req.Dialect)
		if err != nil {
			t.Fatalf("Decode(%q): %v", line, err)
		}
		want.Kind, got.Data, want.Data = schema.KindError, nil, nil
		if diff := cmp.Diff(want, got, public); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestAppendString checks that any string becomes valid JSON, and invalid UTF-8 becomes U+FFFD.
func TestAppendString(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"": `""`, "plain": `"plain"`, `"\`: `"\"\\"`, "\b\f\n\r\t": `"\b\f\n\r\t"`, "\x00\x1f": `"\u0000\u001f"`, "\x7f": "\"\x7f\"",
		"<>&'/": `"<>&'/"`, "é\u2028": "\"é\u2028\"", "a\xffb": "\"a\ufffdb\"", "\xed\xa0\x80": "\"\ufffd\ufffd\ufffd\"", "\xc3": "\"\ufffd\"",
	} {
		if got := string(schema.AppendString([]byte("x"), s)); got != "x"+want {
			t.Errorf("AppendString(%q) = %s", s, got)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s := texts().Draw(t, "s")
		quoted := schema.AppendString(nil, s)
		if !schema.Valid(quoted) || strings.ContainsAny(string(quoted), "\n\r\x00") {
			t.Fatalf("AppendString(%q) = %q", s, quoted)
		}
		in, err := schema.TypeOf[schema.EchoInput]().Decode([]byte(`{"message":` + string(quoted) + `}`))
		if err != nil {
			t.Fatal(err)
		}
		if got := in.(*schema.EchoInput).Message; utf8.ValidString(s) && got != s {
			t.Fatalf("%q came back as %q", s, got)
		}
	})
}
