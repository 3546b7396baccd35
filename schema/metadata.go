package schema

import (
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// decode decodes the metadata member of an envelope (MESSAGE 4.1.2). It decodes all members that are well formed, in any
// order, and returns the first fault: OsMessage requires the object, OsEvent checks it if present (BRIDGE 4.2.1).
func (md *Metadata) decode(raw []byte, d Dialect) *fault.Fault {
	if raw == nil {
		if d == OsEvent {
			return nil
		}
		return violation("metadata", "missing required field: metadata")
	}
	if raw[0] != '{' {
		return violation("metadata", "metadata must be an object")
	}
	md.Present = true
	var first *fault.Fault
	note := func(err *fault.Fault) {
		if first == nil {
			first = err
		}
	}
	var hasTime bool
	jsontype.Members(raw, func(name, value []byte) bool {
		switch string(name) {
		case "id":
			note(readText(&md.ID, value, "metadata.id"))
		case "timestamp":
			hasTime = true
			at, ok := jsontype.ParseInteger(value)
			if !ok || at < 0 {
				note(timestampFault())
			}
			md.Timestamp = at
		case "correlation":
			note(readText(&md.Correlation, value, "metadata.correlation"))
		case "causation":
			if string(value) != "null" { // MESSAGE 4.5.2: a message without a parent may have null here
				note(readText(&md.Causation, value, "metadata.causation"))
			}
		case "idempotencyKey":
			note(readText(&md.IdempotencyKey, value, "metadata.idempotencyKey"))
		case "origin":
			if note(readText(&md.Origin, value, "metadata.origin")); len(md.Origin) > maxOrigin {
				note(violation("metadata.origin", "metadata.origin must not be longer than %d bytes", maxOrigin))
			}
		case "errand":
			if value[0] == '"' {
				md.Errand = string(jsontype.Unquote(value))
			}
		case "progress":
			md.Progress = string(value) == "true"
		case "error":
			if value[0] == '"' {
				md.Error = string(jsontype.Unquote(value))
			}
		case "refs":
			md.Refs = string(value)
		case "kernel":
			if value[0] == '{' {
				md.Kernel = string(value)
			}
		}
		return true
	})
	if first == nil && md.ID == "" {
		first = violation("metadata.id", "missing required field: metadata.id")
	}
	if first == nil && !hasTime {
		first = violation("metadata.timestamp", "missing required field: metadata.timestamp")
	}
	return first
}

// maxTimestamp is the largest integer that every JSON library reads exactly.
const maxTimestamp = 1<<53 - 1

func timestampFault() *fault.Fault {
	return violation("metadata.timestamp", "metadata.timestamp must be a non-negative integer of at most %d: milliseconds since 1970", maxTimestamp)
}

// maxOrigin bounds an origin, in bytes.
const maxOrigin = 1024

func readText(dst *string, raw []byte, field string) *fault.Fault {
	if raw[0] != '"' || len(raw) == 2 {
		return violation(field, "%s must be a non-empty string", field)
	}
	*dst = string(jsontype.Unquote(raw))
	return nil
}
