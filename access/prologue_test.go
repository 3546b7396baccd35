package access_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// script is a link whose other end has already sent all its input.
type script struct {
	*schema.LineReader
	dialect schema.Dialect
	said    strings.Builder
}

func newScript(dialect schema.Dialect, input string) *script {
	return &script{LineReader: schema.NewLineReader(strings.NewReader(input), schema.MaxLine), dialect: dialect}
}

func (s *script) Write(p []byte) (int, error) { return s.said.Write(p) }
func (s *script) SetDeadline(time.Time) error { return nil }
func (s *script) Dialect() schema.Dialect     { return s.dialect }
func (s *script) LineLimit() int              { return schema.MaxLine }

// frames decodes what was sent.
func (s *script) frames(t testing.TB) []schema.Message {
	t.Helper()
	var all []schema.Message
	for line := range strings.Lines(s.said.String()) {
		m, fault := schema.Decode([]byte(strings.TrimSuffix(line, "\n")), s.dialect)
		if fault != nil {
			t.Fatalf("the daemon sent %s: %v", line, fault)
		}
		all = append(all, m)
	}
	return all
}

const (
	meta         = `,"metadata":{"id":"r1","timestamp":1,"correlation":"c1"}}`
	replyMessage = `{"kind":"reply","type":"Syscall.Authenticate","data":{}` + meta
	replyEvent   = `{"type":"response","name":"Syscall.Authenticate","payload":{}` + meta
	pingMessage  = `{"kind":"query","type":"Syscall.Ping","data":{"payload":1}` + meta
	pingEvent    = `{"type":"query","name":"Syscall.Ping","payload":{"payload":1}` + meta
)

// prologues are inputs of a client in open mode. Each word of want is one frame that the daemon
// sends after its offer: m or e for the dialect, then the code; the accepted frame gets no answer.
var prologues = []struct {
	name     string
	input    string
	admitted bool
	want     string
	rest     string // the next line, which belongs to the handler
}{
	{"reply", replyMessage + "\n", true, "", ""},
	{"response", replyEvent + "\n", true, "", ""},
	{"without a line end", replyMessage, true, "", ""},
	{"with CRLF after blank lines", "\r\n  \n" + replyMessage + "\r\n", true, "", ""},
	{"without metadata", `{"kind":"reply","type":"Syscall.Authenticate","data":{}}`, true, "", ""},
	{"response without metadata", `{"type":"response","name":"Syscall.Authenticate","payload":{}}`, true, "", ""},
	{"without data", `{"kind":"reply","type":"Syscall.Authenticate"}`, true, "", ""},
	{"response without payload", `{"type":"response","name":"Syscall.Authenticate"}`, true, "", ""},
	{"null data", `{"kind":"reply","type":"Syscall.Authenticate","data":null` + meta, true, "", ""},
	{"any data", `{"kind":"reply","type":"Syscall.Authenticate","data":[{"x":1e999}]` + meta, true, "", ""},
	{"command", `{"kind":"command","type":"Syscall.Authenticate","data":{}` + meta, true, "", ""},
	{"command without metadata", `{"kind":"command","type":"Syscall.Authenticate","data":{}}`, true, "", ""},
	{"command of the older dialect", `{"type":"command","name":"Syscall.Authenticate","payload":{}}`, true, "", ""},
	{"what follows belongs to the handler", replyMessage + "\n" + pingMessage + "\n", true, "", pingMessage},
	{"nothing", "", false, "", ""},
	{"only blank lines", "\n\r\n \t\n", false, "", ""},
	{"query first", pingMessage + "\n" + replyMessage, true, "m401", ""},
	{"each in its own dialect", pingEvent + "\n" + pingMessage + "\n" + replyMessage, true, "e401 m401", ""},
	{"an event is answered here", `{"kind":"event","type":"User.Left","data":1` + meta + "\n" + replyMessage, true, "m401", ""},
	{"another reply", `{"kind":"reply","type":"Syscall.Ping","data":1` + meta, false, "m401", ""},
	{"query of the right type", `{"kind":"query","type":"Syscall.Authenticate","data":{}` + meta, false, "m401", ""},
	{"error of the right type", `{"kind":"error","type":"Syscall.Authenticate","data":{}` + meta, false, "m401", ""},
	{"event of the right type", `{"type":"event","name":"Syscall.Authenticate","payload":{}` + meta, false, "e401", ""},
	{"malformed metadata", `{"kind":"reply","type":"Syscall.Authenticate","data":1,"metadata":{"id":""}}`, false, "m422", ""},
	{"not JSON", "hello\n" + replyMessage, true, "s400", ""},
	{"a duplicate member", `{"kind":"reply","kind":"reply","type":"Syscall.Authenticate","data":1` + meta, false, "s400", ""},
	{"bad UTF-8", "{\"kind\":\"reply\",\"type\":\"Syscall.Authenticate\",\"data\":\"\xff\"" + meta, false, "s400", ""},
	{"too deep", `{"kind":"reply","type":"Syscall.Authenticate","data":` + strings.Repeat("[", 99) + strings.Repeat("]", 99) + meta, false, "s400", ""},
	{"no kind", `{"type":"Syscall.Authenticate","data":1` + meta, false, "s422", ""},
	{"no type", `{"kind":"reply","data":1` + meta, false, "m422", ""},
	{"no object", `[1]`, false, "s422", ""},
	{"line too long", strings.Repeat("x", schema.MaxLine+1) + "\n" + replyMessage, true, "s413", ""},
	{"answer too long", strings.Replace(replyMessage, "{}", `"`+strings.Repeat("x", schema.MaxLine)+`"`, 1), false, "s413", ""},
}

func TestPrologueInOpenMode(t *testing.T) {
	t.Parallel()
	for _, tt := range prologues {
		for _, dialect := range []schema.Dialect{schema.OsMessage, schema.OsEvent} {
			t.Run(tt.name+" to "+dialect.String(), func(t *testing.T) {
				t.Parallel()
				link := newScript(dialect, tt.input)
				offer, err := access.OpenMode{}.Offer(t.Context(), access.Peer{}, nil)
				testkit.Must(t, err)
				_, err = access.RunPrologue(link, offer)
				if tt.admitted && err != nil || !tt.admitted && !errors.Is(err, io.EOF) {
					t.Errorf("got %v, admitted should be %v", err, tt.admitted)
				}
				said := link.frames(t)
				if m := said[0]; m.Dialect != dialect || m.Kind != schema.KindCommand || m.Type != "Syscall.Authenticate" ||
					string(m.Data) != `{"scheme":"none"}` || !m.Meta.Present {
					t.Errorf("the first frame is %+v", m)
				}
				var got []string
				for _, m := range said[1:] {
					got = append(got, code(t, m))
				}
				want := strings.ReplaceAll(tt.want, "s", map[schema.Dialect]string{schema.OsMessage: "m", schema.OsEvent: "e"}[dialect])
				if strings.Join(got, " ") != want {
					t.Errorf("the daemon sent %v, want %s\n%s", got, want, link.said.String())
				}
				if tt.rest != "" {
					if line, err := link.Next(); err != nil || string(line) != tt.rest {
						t.Errorf("the rest is %q, %v, want %q", line, err, tt.rest)
					}
				}
			})
		}
	}
}

// code names an error frame by dialect and code.
func code(t testing.TB, m schema.Message) string {
	t.Helper()
	codes := map[string]string{
		`"code":401`: "401", `"code":"UNAUTHORIZED"`: "401", `"code":400`: "400", `"code":"INVALID_JSON"`: "400",
		`"code":422`: "422", `"code":"SCHEMA_VIOLATION"`: "422", `"code":413`: "413", `"code":"LINE_TOO_LONG"`: "413",
		`"code":503`: "503", `"code":"UNAVAILABLE"`: "503",
	}
	if m.Kind == schema.KindError {
		for text, code := range codes {
			if strings.Contains(string(m.Data), text) {
				return map[schema.Dialect]string{schema.OsMessage: "m", schema.OsEvent: "e"}[m.Dialect] + code
			}
		}
	}
	t.Errorf("unknown frame %+v with %s", m, m.Data)
	return ""
}

func TestRefusalsSayWhatTheyAnswer(t *testing.T) {
	t.Parallel()
	link := newScript(schema.OsMessage, pingEvent)
	_, err := access.RunPrologue(link, access.Offer{Data: []byte("{}")})
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	m := link.frames(t)[1]
	if m.Type != "Syscall.Ping" || m.Meta.Causation != "r1" || m.Meta.Correlation != "c1" || m.Meta.ID == "" {
		t.Errorf("the refusal is %+v", m)
	}
	if !strings.Contains(string(m.Data), "Syscall.Authenticate") {
		t.Errorf("the refusal does not say how to correct the answer: %s", m.Data)
	}
}

func TestPrologueWithAKey(t *testing.T) {
	t.Parallel()
	wrong := fault.AuthSignature.New("the signature is wrong")
	somebody := access.Identity{Key: &access.AuthorizedKey{Line: 3}, Agent: 7}
	nobody := access.Identity{}
	offer := access.Offer{
		Data:   []byte(`{"scheme":"signature","challenge":"MTIz"}`),
		Issued: time.UnixMilli(1_735_000_000_123),
		Verify: func(answer []byte) (access.Identity, error) {
			switch string(answer) {
			case `"good"`:
				return somebody, nil
			case `"broken"`:
				return nobody, errors.New("read /home/u/.ssh/secret: permission denied")
			}
			return nobody, wrong
		},
	}
	answer := func(data string) string { return strings.Replace(replyMessage, "{}", data, 1) }
	tests := []struct {
		name, input string
		identity    access.Identity
		want        string
		fails       error
	}{
		{"good", answer(`"good"`), somebody, "", nil},
		{"wrong", answer(`"bad"`) + "\n" + answer(`"good"`), nobody, "m401", wrong},
		{"its own dialect", strings.Replace(replyEvent, "{}", `"good"`, 1), somebody, "", nil},
		{"without metadata", `{"kind":"reply","type":"Syscall.Authenticate","data":"good"}`, nobody, "m422", io.EOF},
		{"a command is no answer", strings.Replace(answer(`"good"`), "reply", "command", 1), nobody, "m401", io.EOF},
		{"another frame first", pingMessage + "\n" + answer(`"good"`), somebody, "m401", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			link := newScript(schema.OsMessage, tt.input)
			identity, err := access.RunPrologue(link, offer)
			if identity != tt.identity || !errors.Is(err, tt.fails) {
				t.Errorf("got %+v, %v, want %+v, %v", identity, err, tt.identity, tt.fails)
			}
			if first := link.frames(t)[0]; first.Meta.Timestamp != 1_735_000_000_123 {
				t.Errorf("the offer's time is %d, not that of its issue", first.Meta.Timestamp)
			}
			var got []string
			for _, m := range link.frames(t)[1:] {
				got = append(got, code(t, m))
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("the daemon sent %v, want %s", got, tt.want)
			}
		})
	}

	link := newScript(schema.OsMessage, answer(`"broken"`))
	if _, err := access.RunPrologue(link, offer); err == nil {
		t.Error("admitted although Verify failed")
	}
	if strings.Contains(link.said.String(), "secret") {
		t.Errorf("the client sees internals: %s", link.said.String())
	}
}
