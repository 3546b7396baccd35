package kernel

import (
	"strconv"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Invalid is a fault of the data's named member that its schema cannot say (PROTOCOL 3: 422).
func Invalid(field, format string, args ...any) *fault.Fault {
	return fault.WireInvalidInput.New("Invalid input: "+field+" "+format, args...).At(field)
}

// CheckName refuses a name with a character that people cannot see. It is for what is given a name now: the journal may hold
// such names from before, and they can still be read and removed.
func CheckName(field, name string) *schema.Error {
	for _, r := range name {
		if schema.Hidden(r) {
			return Invalid(field, "must not have the character %U, which is not visible or changes how the text around it is shown: leave it out", r)
		}
	}
	return nil
}

// units writes an amount the way that people do: 1000000, not 1e+06.
func units(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }
