package schema

import (
	"fmt"

	"github.com/go-json-experiment/json"
)

// Marshal writes v, one of the data types of this package, as one JSON value on one line. The same v always gives the
// same bytes: members of maps come in ascending order.
func Marshal(v any) ([]byte, error) {
	data, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("marshal %T: %w", v, err)
	}
	return data, nil
}
