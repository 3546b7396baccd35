package actors_test

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/rs/zerolog"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/schema"
)

// secret is data that no log may contain.
const secret = "xyzzy-4711-plugh"

// loggers are handlers that differ in how they format unknown types.
var loggers = map[string]func(io.Writer) slog.Handler{
	"text": textLog,
	"json": func(w io.Writer) slog.Handler {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug})
	},
	"zerolog": func(w io.Writer) slog.Handler { return zerolog.NewSlogHandler(zerolog.New(w)) },
}

// TestLogHoldsNoPayload makes calls fail in every way that is logged, and checks that the log has none of their data.
func TestLogHoldsNoPayload(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		act    func(s *system, domain *fake)
		logged []string // what shows that it was logged
	}{
		{
			name: "failed calls",
			act: func(s *system, _ *fake) {
				c := s.connect()
				c.send(echo("a", "fail "+secret), echo("b", "panic "+secret), echo("c", "refuse "+secret), echo("d", secret))
				c.send(`{"`+secret, frame(schema.OsMessage, schema.KindQuery, "Nobody.Knows", `"`+secret+`"`, "e"))
			},
			logged: []string{"syscall failed", "syscall panicked"},
		},
		{
			name: "calls to a domain that is dead",
			act: func(s *system, _ *fake) {
				c := s.connect()
				c.send(echo("a", "die "+secret), echo("b", secret))
				synctest.Wait()
				c.send(echo("c", secret), ping("d", `"`+secret+`"`))
			},
			logged: []string{"actor panicked", "DeadLetter", "calls"},
		},
		{
			name: "answers to a connection that is dead",
			act: func(s *system, _ *fake) {
				l := newLink(schema.OsMessage, schema.MaxLine, unbounded)
				l.onWrite = func() { panic(internals) }
				s.serve(l).send(echo("a", secret))
				synctest.Wait() // the answer ends the connection
				actors.AnswerLate(s.kernel, "c-1", secret)
				synctest.Wait()
			},
			logged: []string{"actor panicked", "DeadLetter", "calls"},
		},
	}
	for _, test := range tests {
		for name, handler := range loggers {
			t.Run(test.name+", "+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					domain := newFake()
					s := startLogging(t, mount(domain), handler)
					test.act(s, domain)
					synctest.Wait()
					log := s.log.String()
					for _, words := range test.logged {
						if !strings.Contains(log, words) {
							t.Errorf("%q was not logged:\n%s", words, log)
						}
					}
					for _, spelling := range spellings(secret) {
						if strings.Contains(log, spelling) {
							t.Errorf("the log shows a payload as %q:\n%s", spelling, log)
						}
					}
				})
			})
		}
	}
}

// spellings returns the forms in which bytes may appear in a log: as text, as numbers, and in base64 with any offset.
func spellings(s string) []string {
	list := []string{s, strings.Trim(fmt.Sprint([]byte(s)), "[]"), fmt.Sprintf("%x", s)}
	for shift := range 3 {
		padded := strings.Repeat(" ", shift) + s
		padded = padded[:len(padded)/3*3]
		encoded := base64.StdEncoding.EncodeToString([]byte(padded))
		list = append(list, encoded[(shift+2)/3*4:])
	}
	return list
}
