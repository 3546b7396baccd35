package schema

import (
	"bytes"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// Memory is the domain of the key-value store.
const Memory Domain = "memory"

// MemoryGetInput is the data of Memory.Get.
type MemoryGetInput struct {
	Target
	Key string `json:"key" keep:"always" minlen:"1" doc:"Key, such as notes/1. A leading slash makes no difference. proc/ holds what the kernel says of itself."`
}

// MemorySetInput is the data of Memory.Set.
type MemorySetInput struct {
	Target
	Key      string   `json:"key" keep:"always" minlen:"1" doc:"Key, such as notes/1: segments separated by slashes, at most 1024 bytes. A leading slash makes no difference."`
	Value    Value    `json:"value,omitzero" keep:"applied" doc:"Any JSON value. Under vault/ only a sealed string, which begins with pwenc:v1:."`
	ValueRef *BlobRef `json:"valueRef,omitzero" instead:"value" keep:"applied" doc:"The value, by reference: a file in the blob directory that holds one JSON value of at most 1000000 bytes. In place of value."`
}

// Reference implements Referring.
func (in *MemorySetInput) Reference() (member string, given bool, ref *BlobRef) {
	return "value", in.Value != nil, in.ValueRef
}

// Confidential reports whether the value may be a secret that the caller forgot to seal (PROTOCOL 5).
func (in *MemorySetInput) Confidential() bool {
	return strings.HasPrefix(strings.TrimLeft(in.Key, "/"), "vault/")
}

// MemoryCompareAndSetInput is the data of Memory.CompareAndSet.
type MemoryCompareAndSetInput struct {
	MemorySetInput
	Expected Value `json:"expected,omitzero" keep:"applied" doc:"The value that has to be there. Absent: the key must not be there. null: its value must be null."`
}

// MemoryDeleteInput is the data of Memory.Delete.
type MemoryDeleteInput struct {
	Target
	Key string `json:"key" keep:"always" minlen:"1" doc:"Key to remove."`
}

// MemoryRestoreInput is the data of the kernel's own Memory.Restore.
type MemoryRestoreInput struct {
	Undoes
	Key   string `json:"key" keep:"always" minlen:"1" doc:"Key, without a leading slash."`
	Value Value  `json:"value,omitzero" keep:"applied" doc:"The value that it had before what is undone; absent, as text: it was not there."`
	Text  string `json:"text,omitzero" keep:"applied" doc:"The value in place of value, exactly as it was written, if encoding would change its text."`
}

// Set sets the value, nil if there is none.
func (in *MemoryRestoreInput) Set(value Value) error {
	written, err := Marshal(value)
	if err != nil {
		return err
	}
	if bytes.Equal(written, value) {
		in.Value = value
	} else {
		in.Text = string(value)
	}
	return nil
}

// Restored returns the value, nil if there is none.
func (in *MemoryRestoreInput) Restored() Value {
	if in.Text != "" {
		return Value(in.Text)
	}
	return in.Value
}

// MemoryListInput is the data of Memory.List.
type MemoryListInput struct {
	Target
	Prefix *string `json:"prefix,omitzero" keep:"always" doc:"Only keys that begin with this; a leading slash makes no difference. Keys under proc/ come only if the prefix begins with proc/."`
	Limit  *int64  `json:"limit,omitzero" keep:"always" min:"1" max:"1000" doc:"Most keys to return, 1 to 1000. Default 100. Fewer come if the line would be too long."`
	Cursor *string `json:"cursor,omitzero" keep:"always" doc:"Where to continue: next of the previous reply."`
}

// TakesLong reports whether the list covers every process that ever existed, so that the call runs
// alone on its connection.
func (in *MemoryListInput) TakesLong() bool {
	return in.Prefix != nil && strings.HasPrefix(strings.TrimPrefix(*in.Prefix, "/"), "proc/")
}

// MemoryKeyOf returns the key in a command of the memory, without its leading slash; "" for any other message. The key may be
// invalid.
func MemoryKeyOf(m *Message) (key string) {
	if row, ok := Lookup(m.Type); !ok || row.Domain != Memory || row.Kind != KindCommand || !bytes.HasPrefix(m.Data, []byte("{")) {
		return ""
	}
	jsontype.Members(m.Data, func(name, value []byte) bool {
		if string(name) == "key" && value[0] == '"' {
			key = strings.TrimPrefix(string(jsontype.Unquote(value)), "/")
		}
		return key == ""
	})
	return key
}

// MemoryListOutput is the answer of Memory.List.
type MemoryListOutput struct {
	Keys []string `json:"keys" keep:"always" doc:"Keys in ascending byte order, each with a leading slash."`
	Next string   `json:"next,omitzero" keep:"always" doc:"There is more: the cursor of the next page."`
}

// AppendJSON appends the answer.
func (o MemoryListOutput) AppendJSON(dst []byte) []byte {
	size := len(`{"keys":[],"next":""}`) + len(o.Next)
	for _, key := range o.Keys {
		size += len(key) + len(`"",`)
	}
	dst = append(slices.Grow(dst, size), `{"keys":[`...)
	for i, key := range o.Keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, key)
	}
	dst = append(dst, ']')
	if o.Next != "" {
		dst = AppendString(append(dst, `,"next":`...), o.Next)
	}
	return append(dst, '}')
}

// The syscalls of this file.
var (
	MemoryGet = NewQuery[MemoryGetInput, Value](Syscall{
		Type: "Memory.Get", Domain: Memory,
		Script:      "scripts/memory.txtar",
		Description: "Returns the value stored under a key, byte for byte as it was written. proc/ holds what the kernel says of itself: proc/cmdline, proc/meminfo, proc/self/status, proc/<pid>/status, and for the operator proc/origins.",
	})

	MemorySet = NewCommand[MemorySetInput, SuccessOutput](Syscall{
		Type: "Memory.Set", Domain: Memory,
		Script:      "scripts/memory.txtar",
		Description: "Stores a value under a key, in place of the one before. proc/ is read-only; vault/ takes sealed values only.",
	})

	MemoryCompareAndSet = NewCommand[MemoryCompareAndSetInput, SuccessOutput](Syscall{
		Type: "Memory.CompareAndSet", Domain: Memory,
		Script:      "scripts/memory.txtar",
		Description: "Stores a value under a key if its present value is the expected one, or if the key does not exist and nothing is expected; else 409. Order of members, white space and escapes in strings do not matter; numbers are compared as written: 1 is not 1.0. If several callers expect the same value, one succeeds. The rules of Memory.Set hold.",
	})

	MemoryDelete = NewCommand[MemoryDeleteInput, SuccessOutput](Syscall{
		Type: "Memory.Delete", Domain: Memory,
		Script:      "scripts/memory.txtar",
		Description: "Removes a key with its value. A key that is not there is an error.",
	})

	MemoryRestore = NewStep[MemoryRestoreInput, SuccessOutput](Syscall{
		Type: "Memory.Restore", Domain: Memory,
		Description: "Undoes a change of memory: the key has the value again that it had before, or is not there again.",
	})

	MemoryList = NewQuery[MemoryListInput, MemoryListOutput](Syscall{
		Type: "Memory.List", Domain: Memory,
		Script:      "scripts/memory.txtar",
		Description: "Lists keys in ascending order, a page at a time.",
	})
)
