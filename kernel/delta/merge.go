package delta

import (
	"sync"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// object is a JSON object. It is never changed: a merge makes another one, which shares what stayed the same. So a state
// of long ago costs little beside the present one. nil is the empty object.
type object = btree.Map[string, node]

// node is a JSON value: an object, or the text of anything else, as it was written.
type node struct {
	members *object // nil: text is the value
	text    string
}

// merge applies a JSON merge patch (RFC 7386) that is an object: its members replace those of target, null removes one,
// objects are merged alike.
func merge(target *object, patch []byte) *object {
	merged := &object{}
	if target != nil {
		merged = target.Copy()
	}
	for name, value := range members(patch) { // in any order: the names differ
		switch {
		case value[0] == '{':
			old, _ := merged.Get(name)
			merged.Set(name, node{members: merge(old.members, value)})
		case string(value) == "null":
			merged.Delete(name)
		default:
			merged.Set(name, node{text: string(value)})
		}
	}
	return merged
}

// anyMembers is the shape of an object of which nothing is known.
var anyMembers = sync.OnceValue(schema.TypeOf[map[string]schema.Value])

// members are those of a JSON object, as they were written.
func members(text []byte) map[string]schema.Value {
	decoded, err := anyMembers().Decode(text)
	if err != nil {
		panic("delta: members of a patch: " + err.Message) // it was checked to be one before it was kept
	}
	return *decoded.(*map[string]schema.Value)
}

// appendObject writes an object with its members in ascending order. Values come out as they were written: numbers keep
// their digits, strings their escapes.
func appendObject(dst []byte, o *object) []byte {
	dst = append(dst, '{')
	if o != nil {
		o.Scan(func(name string, value node) bool {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(schema.AppendString(dst, name), ':')
			if value.members != nil {
				dst = appendObject(dst, value.members)
			} else {
				dst = append(dst, value.text...)
			}
			return true
		})
	}
	return append(dst, '}')
}
