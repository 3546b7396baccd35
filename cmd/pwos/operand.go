package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/promptware-os/pwos/schema"
)

// What is typed for a number or a name is read here; the errors are wrong usage.

// pidOf reads a PID; the least is 0 where the operator may be meant, else 1.
func pidOf(text string, least int64) (int64, error) {
	pid, err := strconv.ParseInt(text, 10, 64)
	if err != nil || pid < least {
		return 0, fmt.Errorf("%q is no PID: one is a number from %d on, and \"pwos ps\" lists them", text, least)
	}
	return pid, nil
}

// operatorName stands for the operator where a PID of a mailbox is meant.
const operatorName = "operator"

// mailboxOf reads whose mailbox is meant: a PID, or the operator's, whose PID is 0.
func mailboxOf(text string, least int64) (int64, error) {
	if text == operatorName {
		return 0, nil
	}
	return pidOf(text, least)
}

// numberFlag is a flag whose zero is a value too.
type numberFlag struct{ value int64 }

func (f *numberFlag) add(cmd *cobra.Command, name, what string) {
	cmd.Flags().Int64Var(&f.value, name, 0, what)
}

// spanFlag is a duration, 0 or more.
type spanFlag time.Duration

// String is of none what pflag leaves out of a help text.
func (f *spanFlag) String() string {
	if *f == 0 {
		return "0"
	}
	return time.Duration(*f).String()
}

func (f *spanFlag) Type() string { return "duration" }

func (f *spanFlag) Set(text string) error {
	span, err := time.ParseDuration(text)
	if err == nil && span < 0 {
		err = errors.New("it is less than nothing")
	}
	*f = spanFlag(span)
	return err
}

// given returns the value, nil where the flag was not given; less than least is wrong usage.
func (f *numberFlag) given(cmd *cobra.Command, name string, least int64) (*int64, error) {
	if !cmd.Flags().Changed(name) {
		return nil, nil
	}
	if f.value < least {
		return nil, fmt.Errorf("--%s must be at least %d, not %d", name, least, f.value)
	}
	return &f.value, nil
}

// flagError is an error of the flags' own, in our words where it is about a value: those of the parser are for programmers.
func flagError(err error) error {
	wrong, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
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
		return fmt.Errorf("--%s takes %s, and %s is too large for one", wrong.GetFlag().Name, what, wrong.GetValue())
	}
	return fmt.Errorf("--%s takes %s, not %q", wrong.GetFlag().Name, what, wrong.GetValue())
}

// textGiven returns the value of a text flag, nil where it was not given.
func textGiven(cmd *cobra.Command, name string, value string) *string {
	if !cmd.Flags().Changed(name) {
		return nil
	}
	return &value
}

// quotasOf reads what --quota was given: resource=amount, each resource once.
func quotasOf(given []string) (map[string]float64, error) {
	if len(given) == 0 {
		return nil, nil
	}
	quotas := make(map[string]float64, len(given))
	for _, text := range given {
		resource, amount, found := strings.Cut(text, "=")
		if !found || resource == "" {
			return nil, fmt.Errorf("--quota %q is not of the form resource=amount", text)
		}
		if _, twice := quotas[resource]; twice {
			return nil, fmt.Errorf("--quota names %s twice", resource)
		}
		n, err := amountOf(amount)
		if err != nil {
			return nil, fmt.Errorf("--quota %s: %w", resource, err)
		}
		quotas[resource] = n
	}
	return quotas, nil
}

// amountOf reads an amount, which is a JSON number (PROTOCOL 5).
func amountOf(text string) (float64, error) {
	if schema.Valid([]byte(text)) {
		if n, ok := valueOf[float64](schema.Value(text)); ok && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is no amount: one is a number of at least 0", text)
}

// units writes an amount the way that people do: 1000000, not 1e+06.
func units(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }
