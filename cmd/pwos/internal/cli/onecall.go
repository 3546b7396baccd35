package cli

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/arg"
	"github.com/promptware-os/pwos/schema"
)

// OneCall completes the command of a verb that makes one syscall. The arguments set the members of in that operands names, in order.
func (a *App) OneCall(cmd *cobra.Command, typ string, in any, operands ...string) *cobra.Command {
	cmd.Args = Arguments(cobra.ExactArgs(len(operands)))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		for i, name := range operands {
			if err := a.operand(cmd, MemberOf(in, name), args[i]); err != nil {
				return Usage(cmd, err)
			}
		}
		return a.Show(cmd.Context(), typ, in, a.PrintValue)
	}
	return cmd
}

// Show makes a call and passes the answer's data to print.
func (a *App) Show(ctx context.Context, typ string, input any, print func(schema.Value) error) error {
	return a.WithKernel(ctx, UsualTimeout, func(ctx context.Context, c *client.Client) error {
		data, err := Invoke(ctx, c, typ, input)
		if err != nil {
			return err
		}
		return print(data)
	})
}

// member is a member of a call's data that a flag or an operand sets. It implements pflag.Value.
type member struct {
	to  reflect.Value // an int64, a string, or a pointer to one; a nil pointer: not given
	tag reflect.StructTag
}

// MemberOf returns the member of in with that JSON name. It panics if there is none.
func MemberOf(in any, name string) member {
	data := reflect.ValueOf(in).Elem()
	for _, f := range reflect.VisibleFields(data.Type()) {
		if known, _, _ := strings.Cut(f.Tag.Get("json"), ","); known == name {
			return member{data.FieldByIndex(f.Index), f.Tag}
		}
	}
	panic(fmt.Sprintf("%T has no member %s", in, name))
}

// MemberFlag adds a flag that sets a member of a call's data.
func MemberFlag(cmd *cobra.Command, in any, member, name, what string) {
	cmd.Flags().Var(MemberOf(in, member), name, what)
}

// Number returns the value of a flag for a number that must be least or greater; to stays nil if the flag is not given.
func Number(to **int64, least int64) member {
	return member{reflect.ValueOf(to).Elem(), reflect.StructTag(fmt.Sprintf(`min:"%d"`, least))}
}

// Type implements pflag.Value: it is the type in the help.
func (m member) Type() string {
	if t := m.to.Type(); t.Kind() == reflect.Pointer {
		return t.Elem().String()
	}
	return m.to.Type().String()
}

// String implements pflag.Value. An unset member has the text that pflag omits from the help.
func (m member) String() string {
	switch at := reflect.Indirect(m.to); {
	case at.IsValid():
		return fmt.Sprint(at)
	case m.Type() == "int64":
		return "0"
	}
	return ""
}

// unfit is the reason why a value is invalid for a member. In messages it follows the member's name.
type unfit string

func (u unfit) Error() string { return string(u) }

// Set implements pflag.Value. It checks the bounds and the enumeration of the field's tag.
func (m member) Set(text string) error {
	if m.Type() == "string" {
		words := strings.Fields(m.tag.Get("enum"))
		if last := len(words) - 1; last > 0 && !slices.Contains(words, text) {
			return unfit(fmt.Sprintf(" is %s or %s, not %q", strings.Join(words[:last], ", "), words[last], text))
		}
		m.put(reflect.ValueOf(text))
		return nil
	}
	n, err := strconv.ParseInt(text, 0, 64)
	if err != nil {
		return err
	}
	if least, err := strconv.ParseInt(m.tag.Get("min"), 10, 64); err == nil && n < least {
		return unfit(fmt.Sprintf(" must be at least %d, not %d", least, n))
	}
	if most, err := strconv.ParseInt(m.tag.Get("max"), 10, 64); err == nil && n > most {
		return unfit(fmt.Sprintf(" is at most %d", most))
	}
	m.put(reflect.ValueOf(n))
	return nil
}

// who returns which agents the member accepts: the operator where the least PID is 0.
func (m member) who() arg.Who {
	least, _ := strconv.ParseInt(m.tag.Get("min"), 10, 64)
	return arg.Who{Operator: least == 0}
}

// target returns where the member's number is, which is then given.
func (m member) target() *int64 {
	if m.to.Kind() != reflect.Pointer {
		return m.to.Addr().Interface().(*int64)
	}
	if m.to.IsNil() {
		m.to.Set(reflect.New(m.to.Type().Elem()))
	}
	return m.to.Interface().(*int64)
}

func (m member) put(value reflect.Value) {
	if m.to.Kind() == reflect.Pointer {
		m.to.Set(reflect.New(m.to.Type().Elem()))
	}
	reflect.Indirect(m.to).Set(value)
}
