package daemon

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/term"

	"github.com/promptware-os/pwos/daemon/config"
)

// newLog returns a logger to w: for people at a terminal, JSON otherwise.
func newLog(w io.Writer, settings config.Log, getenv func(string) string) *slog.Logger {
	return newLogVia(w, terminal(w), settings, getenv)
}

// newLogVia is newLog where w leads to a terminal, or does not.
func newLogVia(w io.Writer, terminal bool, settings config.Log, getenv func(string) string) *slog.Logger {
	out := w
	if settings.Format == "console" || (settings.Format == "auto" && terminal) {
		out = zerolog.ConsoleWriter{Out: w, TimeFormat: time.TimeOnly, NoColor: getenv("NO_COLOR") != "" || !terminal}
	}
	logger := zerolog.New(out).Level(level(settings.Level)).With().Timestamp().Logger()
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
