package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"
)

// PIDOf parses a PID, which must be least or greater; PID 0 is the operator.
func PIDOf(text string, least int64) (int64, error) {
	pid, err := strconv.ParseInt(text, 10, 64)
	if err != nil || pid < least {
		return 0, fmt.Errorf("%q is not a PID: PIDs are numbers from %d; \"pwos ps\" lists them", text, least)
	}
	return pid, nil
}

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
	span, err := time.ParseDuration(text)
	if err == nil && span < 0 {
		err = errors.New("must not be negative")
	}
	*f = SpanFlag(span)
	return err
}

// Told is an error about the value of a flag that names the flag.
type Told struct{ Err error }

func (e Told) Error() string { return e.Err.Error() }

// FlagError rewrites the flag parser's error about an invalid value for users.
func FlagError(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	if told, ok := errors.AsType[Told](wrong); ok {
		return told.Err
	}
	if why, ok := errors.AsType[unfit](wrong); ok {
		return fmt.Errorf("--%s %w", wrong.GetFlag().Name, why)
	}
	var what string
	switch wrong.GetFlag().Value.Type() {
	case "int", "int64":
		what = "a whole number"
	case "duration":
		what = "a duration such as 500ms or 2m"
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
