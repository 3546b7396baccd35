package policy

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// Normal returns the data of a call as its handler uses it, in the form of RFC 8785. Two calls of a process with the same
// type and normal data have the same effect. Rules see the same spellings: see args. A reference that the kernel has not
// read has no normal form, since the content may change.
func (j *Judge) Normal(call *kernel.Call) ([]byte, error) {
	text, err := schema.Marshal(call.Input)
	if err != nil {
		return nil, err
	}
	forms := make(map[string]form)
	fetch, ok := call.Input.(*schema.HTTPFetchInput)
	noted := ok && fetch.BodyContent != nil // it replaces the reference, and is what is sent
	if shape := shapes()[call.Syscall]; shape != nil {
		in := reflect.ValueOf(call.Input).Elem()
		for i := range shape.members {
			m := &shape.members[i]
			if m.ref && !in.FieldByIndex(m.index).IsZero() && !noted {
				return nil, &unfitError{m.name, errors.New("it is given by reference: send it as it is")}
			}
			forms[m.name] = m.form
		}
	}
	_, targeted := call.Input.(schema.Targeted)
	_, arrives := call.Input.(*schema.AcceptInput)
	_, uses := call.Input.(*schema.ToolUseInput)
	connects := call.Syscall == schema.NetConnect.Row() || call.Syscall == schema.NetRequest.Row()
	_, executes := call.Input.(*schema.ProgramExecInput)
	out := []byte{'{'}
	member := func(name string, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(jsontype.AppendString(out, name), ':'), value...)
	}
	jsontype.Members(text, func(name, value []byte) bool {
		named := string(name)
		switch _, tool := call.Input.(*schema.CallInput); {
		case targeted && (named == "pid" || named == "tick"): // the question already includes the caller
			return true
		case noted && named == "bodyRef":
			return true
		case uses && named == "use": // the same use once more has another name
			return true
		case connects && (named == "program" || named == "step"): // by whichever program
			return true
		case executes && named == "step": // what is approved in one step may be done in another
			return true
		case arrives && named == "ticks_left": // it is less each time the other kernel asks
			return true
		case tool && named == "syscall":
			value = jsontype.AppendString(nil, j.resolve(call, string(jsontype.Unquote(value))))
		case forms[named] != asItIs && value[0] == '"':
			value = jsontype.AppendString(nil, j.form(call, forms[named], string(jsontype.Unquote(value)), make(types.RecordMap)))
		}
		member(named, value)
		return true
	})
	if ok && fetch.Method == nil {
		member("method", []byte(`"GET"`))
	}
	out = append(out, '}')
	if number := inexact(out); number != "" {
		return nil, fmt.Errorf("the number %s has more digits than a number can represent", fault.Clip(number))
	}
	return jsontype.Canonical(out)
}

// inexact returns the first number of a valid JSON value that RFC 8785 would format as a different number, or "".
func inexact(value []byte) string {
	for at := 0; at < len(value); {
		switch c := value[at]; {
		case c == '"':
			for at++; value[at] != '"'; at++ {
				if value[at] == '\\' {
					at++
				}
			}
			at++
		case c == '-' || '0' <= c && c <= '9':
			end := at + 1
			for end < len(value) && bytes.IndexByte([]byte("0123456789.eE+-"), value[end]) >= 0 {
				end++
			}
			number := string(value[at:end])
			float, err := strconv.ParseFloat(number, 64)
			if err != nil || digitsOf(number) != digitsOf(strconv.FormatFloat(float, 'e', -1, 64)) {
				return number
			}
			at = end
		default:
			at++
		}
	}
	return ""
}

// digitsOf returns the digits of a number without leading and trailing zeros, with the power of ten of the last.
func digitsOf(number string) string {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(number, "-")), "e")
	power, _ := strconv.Atoi(exponent) // an exponent that does not fit is not one of a float64
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	power -= len(fraction)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	return short + "e" + strconv.Itoa(power+len(digits)-len(short))
}
