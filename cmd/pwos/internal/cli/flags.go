package cli

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/schema"
)

// SpanFlag is a flag value: a duration that is not negative.
type SpanFlag time.Duration

// String implements pflag.Value. Zero has the text that pflag omits from the help.
func (f *SpanFlag) String() string {
	if *f == 0 {
		return "0"
	}
	return time.Duration(*f).String()
}

func (f *SpanFlag) Type() string { return "duration" }

func (f *SpanFlag) Set(text string) error {
	span, err := arg.ParseSpan(text)
	*f = SpanFlag(span)
	return err
}

// Told is an error about the value of a flag that names the flag.
type Told struct{ Err error }

func (e Told) Error() string { return e.Err.Error() }

// FlagError rewrites the flag parser's error about an unknown flag of cmd, or an invalid value, for users.
func FlagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		return unknownFlag(cmd, unknown.GetSpecifiedName())
	}
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	if told, ok := errors.AsType[Told](wrong); ok {
		return told.Err
	}
	if why, ok := errors.AsType[unfit](wrong); ok {
		return fmt.Errorf("--%s%w", wrong.GetFlag().Name, why)
	}
	var what string
	switch wrong.GetFlag().Value.Type() {
	case "int", "int64":
		what = "a whole number"
	case "duration":
		what = "a duration such as 500ms, 2m or 7d"
	case "bool":
		what = "true or false"
	default:
		return err
	}
	if errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("--%s takes %s, and %s is too large", wrong.GetFlag().Name, what, wrong.GetValue())
	}
	return fmt.Errorf("--%s takes %s, not %q", wrong.GetFlag().Name, what, wrong.GetValue())
}

// unknownFlag returns an error that suggests the most similar flag, if there is one.
func unknownFlag(cmd *cobra.Command, name string) error {
	like := schema.Nearest(name, func(yield func(string) bool) {
		on := true
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { on = on && (flag.Hidden || yield(flag.Name)) })
	})
	if like != "" {
		return fmt.Errorf("unknown flag --%s; did you mean --%s?", name, like)
	}
	return fmt.Errorf("unknown flag --%s", name)
}

// timeValue is a flag value: a time, in milliseconds since 1970.
type timeValue struct{ to **int64 }

// TimeFlag returns the value of a flag for a time; *to stays nil if the flag is not given.
func TimeFlag(to **int64) pflag.Value { return timeValue{to} }

func (f timeValue) String() string { return "" }
func (f timeValue) Type() string   { return "time" }

func (f timeValue) Set(text string) error {
	at, err := arg.ParseTime(text, time.Now())
	if err != nil {
		return unfit(": " + err.Error())
	}
	*f.to = new(arg.Millis(at))
	return nil
}

// pointValue is a flag value: a place in the record.
type pointValue struct {
	to    *arg.Point
	least int64
}

// PointFlag returns the value of a flag for an entry, which is least or greater, or a time.
func PointFlag(to *arg.Point, least int64) pflag.Value { return pointValue{to, least} }

func (f pointValue) String() string { return "" }
func (f pointValue) Type() string   { return "entry|time" }

func (f pointValue) Set(text string) (err error) {
	if *f.to, err = arg.ParsePoint(text, f.least, time.Now()); err != nil {
		return unfit(": " + err.Error())
	}
	return nil
}

// entryValue is a flag value: the number of an entry.
type entryValue struct{ to reflect.Value }

// EntryFlag returns the value of a flag for an entry; to is an *int64, or a **int64 that stays nil if the flag is not given.
func EntryFlag[N int64 | *int64](to *N) pflag.Value { return entryValue{reflect.ValueOf(to).Elem()} }

func (f entryValue) String() string { return "" }
func (f entryValue) Type() string   { return "entry" }

func (f entryValue) Set(text string) error {
	seq, err := arg.ParseEntry(text, 1)
	if err != nil {
		return unfit(": " + err.Error())
	}
	member{to: f.to}.put(reflect.ValueOf(seq))
	return nil
}
