package main

import (
	"fmt"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// amountOf parses an amount: a JSON number of at least 0 (PROTOCOL 5).
func amountOf(text string) (float64, error) {
	if schema.Valid([]byte(text)) {
		if n, ok := view.As[float64](schema.Value(text)); ok && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is not an amount: give a number of at least 0", text)
}
