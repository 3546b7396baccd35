package jsontype_test

import (
	"bytes"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// FuzzCanonical compares the canonical form with that of another library, for any valid value.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1e21,1E-7,-0,0.1e1,9007199254740993,5e-324,1.7976931348623157e308],"a":{"\u20ac":"\u0000\u001f\"\\\/\ud83d\ude00","\r":null}}`,
		`{"\ufb33":1,"\ud83d\ude00":2,"z":[true,false,{}],"":[]}`, // in the order of UTF-16
		` "\u00e9\u2028" `, `-0.0`, `333333333.33333329`, `{"1.7976931348623157e+308":1e308}`, `[1e400,"1e400"]`, `-1.7976931348623159e308`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4<<10 || !jsontype.Valid(data) {
			return
		}
		ours, err := jsontype.Canonical(data)
		theirs, other := jcs.Transform(data)
		switch {
		case err != nil && other != nil:
			return
		case err != nil || other != nil || !bytes.Equal(ours, theirs):
			t.Fatalf("%s\nours: %s, %v\ntheirs: %s, %v", data, ours, err, theirs, other)
		}
		if again, err := jsontype.Canonical(ours); err != nil || !bytes.Equal(again, ours) {
			t.Fatalf("%s is not stable: %s, %v", ours, again, err)
		}
	})
}
