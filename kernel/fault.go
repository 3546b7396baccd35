package kernel

import (
	"fmt"
	"strconv"

	"github.com/promptware-os/pwos/schema"
)

// Invalid is a fault of the data's named member that its schema cannot say (PROTOCOL 3: 422).
func Invalid(field, format string, args ...any) *schema.Error {
	return &schema.Error{Class: schema.InvalidInput, Field: field, Message: "Invalid input: " + field + " " + fmt.Sprintf(format, args...)}
}

// units writes an amount the way that people do: 1000000, not 1e+06.
func units(amount float64) string { return strconv.FormatFloat(amount, 'f', -1, 64) }
