package schema

import "github.com/promptware-os/pwos/schema/jsontype"

// The data types are described with these.
type (
	// Value is one raw JSON value, kept as it was written.
	Value = jsontype.Value
	// MaybeText is a text, or null where there is none: for a member that is always there.
	MaybeText = jsontype.MaybeText
	// Decimal is a number with all its digits, as it is written.
	Decimal = jsontype.Decimal
	// Type describes the data of one side of a syscall.
	Type = jsontype.Type
)

// TypeOf is jsontype.Of.
func TypeOf[T any]() *Type { return jsontype.Of[T]() }
