// Package logging writes the daemon's log.
package logging

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"
)

// Form configures the format of a log.
type Form struct {
	Level  slog.Level // lines of a lower level are omitted
	Format string     // console, json, or auto: console at a terminal
	Plain  bool       // without colours
}

// New returns a logger to w.
func New(w io.Writer, f Form) *slog.Logger { return f.logger(w, terminal(w)) }

// logger writes to w, in colours only if w is a terminal.
func (f Form) logger(w io.Writer, terminal bool) *slog.Logger {
	out := w
	if f.Format == "console" || (f.Format == "auto" && terminal) {
		out = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: f.Plain || !terminal}
	}
	logger := zerolog.New(out).Level(level(f.Level)).With().Timestamp().Logger()
	return slog.New(zerolog.NewSlogHandler(logger))
}

func level(l slog.Level) zerolog.Level {
	switch {
	case l < slog.LevelInfo:
		return zerolog.DebugLevel
	case l < slog.LevelWarn:
		return zerolog.InfoLevel
	case l < slog.LevelError:
		return zerolog.WarnLevel
	}
	return zerolog.ErrorLevel
}

func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
