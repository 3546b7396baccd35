package refer_test

import (
	"io"
	"testing"

	"github.com/promptware-os/pwos/effect/refer"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// shelf is a store with one content.
type shelf string

func (s shelf) Put(int64, string, bool, io.Reader) (schema.BlobPointer, error) {
	return schema.BlobPointer{}, fault.BlobNotFound.New("nothing is stored")
}

func (s shelf) Read(_ int64, _ string, _ schema.BlobPointer, most int64) ([]byte, error) {
	if int64(len(s)) > most {
		return nil, fault.BlobTooLarge.New("too large")
	}
	return []byte(s), nil
}

// TestRead: what a call refers to is part of it before it passes the gate, and a call that refers to nothing reads nothing.
func TestRead(t *testing.T) {
	t.Parallel()
	const ref = `{"key":"a","valueRef":{"scheme":"file","path":"/run/pwos/blobs/x"}}`
	for name, tt := range map[string]struct {
		data  string
		blobs kernel.Blobs
		needs bool
		want  string
		id    fault.ID
	}{
		"a value":            {data: `{"key":"a","value":1}`, blobs: shelf("2"), want: `{"key":"a","value":1}`},
		"a reference":        {data: ref, blobs: shelf("2"), needs: true, want: `{"key":"a","value":2}`},
		"to no JSON":         {data: ref, blobs: shelf("{"), needs: true, id: fault.WireInvalidInput},
		"without a store":    {data: ref, needs: true, id: fault.BlobNotFound},
		"to something large": {data: ref, blobs: shelf(make([]byte, kernel.MaxInlined+1)), needs: true, id: fault.BlobTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := schema.MemorySet.Row()
			in, err := row.Input().Decode([]byte(tt.data))
			if err != nil {
				t.Fatal(err)
			}
			call := kernel.NewCall(kernel.Request{Message: schema.Message{Data: []byte(tt.data)}, Syscall: row, Input: in}, kernel.Undecided)
			r := refer.Reader{Blobs: tt.blobs, Origin: func(*kernel.Caller) string { return "https://test.local/" }}
			if r.Needs(&call) != tt.needs || r.MayChange(&call) {
				t.Errorf("needs %v, may change %v", r.Needs(&call), r.MayChange(&call))
			}
			switch r.Read(&call); {
			case tt.id != "":
				if call.Err == nil || call.Err.ID != tt.id {
					t.Errorf("got %v", call.Err)
				}
			case call.Err != nil || string(call.Message.Data) != tt.want:
				t.Errorf("got %s, %v", call.Message.Data, call.Err)
			}
		})
	}
}
