package kernel

import (
	"strconv"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Invalid returns a fault of the data's named member that its schema cannot describe (PROTOCOL 3: 422).
func Invalid(field, format string, args ...any) *fault.Fault {
	return fault.WireInvalidInput.New("Invalid input: "+field+" "+format, args...).At(field)
}

// CheckName refuses a name with a character that people cannot see. It is for what is given a name now: the journal may hold
// such names from before, and they can still be read and removed.
func CheckName(field, name string) *fault.Fault {
	for _, r := range name {
		if schema.Hidden(r) {
			return Invalid(field, "must not have the character %U, which is not visible or changes how the text around it is shown", r).WithFix("leave it out")
		}
	}
	return nil
}

// numbered returns the text of a PID or a tick, for the details of a fault.
func numbered(n int64) string { return strconv.FormatInt(n, 10) }

// units writes an amount the way that people do: 1000000, not 1e+06.
func units(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }
