// Package once has the flags of all programs take one value once.
package once

import (
	"fmt"

	"github.com/spf13/pflag"
)

// Flag has a flag that takes one value refuse a second, different one: pflag keeps the last value and drops the others without a word,
// so a list that is given in two flags would lose its first half. Flags that take several values are left as they are.
func Flag(f *pflag.Flag) {
	switch f.Value.(type) {
	case pflag.SliceValue, *value:
		return
	}
	f.Value = &value{Value: f.Value}
}

// value is that of a flag that takes one value.
type value struct {
	pflag.Value
	given *string
}

// Set implements pflag.Value.
func (v *value) Set(text string) error {
	if v.given != nil && *v.given != text {
		return Twice(*v.given)
	}
	if err := v.Value.Set(text); err != nil {
		return err
	}
	v.given = &text
	return nil
}

// Twice is the error of a flag that was given before with the value of this text.
type Twice string

func (t Twice) Error() string {
	return fmt.Sprintf("it takes one value, and was given %q before", string(t))
}
