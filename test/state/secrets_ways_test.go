package state_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// What is a secret, and where:
//
//   - the plaintext of Crypto.Seal, whatever the outcome of the call;
//   - the plaintext that Crypto.Open answers;
//   - the value of Crypto.Open, and that of Memory.Set below vault/, if the call fails: each may be a text that
//     its caller believed to be sealed;
//   - the user and the password in a URL, and headers with credentials;
//   - all of a frame that does not become a call because it is malformed or too long, or has an unknown name or invalid
//     data. It is not journaled.
//
// Not secret is everything else in a call, which is journaled by design (PROTOCOL 7): keys of memory, values outside of vault/,
// payloads of messages, ids and idempotency keys, the aad of a sealed value, and sealed values themselves.

// way is a way to pass a secret to a kernel.
type way struct {
	name string
	// frames has one or more lines that contain the secret.
	frames func(secret string) []string
	// shown is true if the secret is in place of a name, since names are repeated to their caller.
	shown bool
}

// quote writes a JSON string.
func quote(text string) string { return string(schema.AppendString(nil, text)) }

// spelt writes a JSON string with every letter escaped.
func spelt(text string) string {
	var b strings.Builder
	for _, r := range text {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	return `"` + b.String() + `"`
}

// both returns a message in either dialect.
func both(kind, typ, data, extra string) []string {
	return []string{
		fmt.Sprintf(`{"kind":%q,"type":%q,"data":%s,"metadata":{"id":"m","timestamp":1%s}}`, kind, typ, data, extra),
		fmt.Sprintf(`{"type":%q,"name":%q,"payload":%s,"metadata":{"id":"m","timestamp":1%s}}`, kind, typ, data, extra),
	}
}

// callWith returns a way whose data is a pattern with %s for the secret as a JSON string.
func callWith(name, typ, pattern string) way {
	row, _ := schema.Lookup(typ)
	return way{name: name, frames: func(secret string) []string {
		return both(row.Kind.String(), typ, fmt.Sprintf(pattern, quote(secret)), "")
	}}
}

// secretCalls returns the calls whose secrets are not journaled. Process 1 has no token.
func secretCalls(seal func(text string) string) []way {
	keyed := 0
	return []way{
		callWith("seal", "Crypto.Seal", `{"plaintext":%s}`),
		callWith("seal with more", "Crypto.Seal", `{"aad":"k","plaintext":%s}`),
		callWith("seal, denied", "Crypto.Seal", `{"pid":1,"plaintext":%s}`),
		callWith("seal as nobody", "Crypto.Seal", `{"pid":99999,"plaintext":%s}`),
		callWith("aad too long", "Crypto.Seal", `{"plaintext":%s,"aad":"`+strings.Repeat("a", 2000)+`"}`),
		callWith("open what is not sealed", "Crypto.Open", `{"value":%s}`),
		callWith("open what is not sealed, denied", "Crypto.Open", `{"pid":1,"value":%s}`),
		callWith("header", "Http.Fetch", `{"url":"https://127.0.0.1/","headers":{"X-Auth-Key":%s}}`),
		callWith("header, denied", "Http.Fetch", `{"pid":1,"url":"https://127.0.0.1/","headers":{"authorization":%s}}`),
		{name: "password of a URL", frames: func(s string) []string {
			url := fmt.Sprintf(`"https://me:%x/%x@a.example/"`, s, s)
			return append(both("command", "Http.Fetch", `{"url":`+url+`}`, ""), both("command", "Syscall.Call", `{"syscall":`+url+`}`, "")...)
		}},
		{name: "password of a resource", frames: func(s string) []string {
			uri := fmt.Sprintf(`"https://me:%x?%x@a.example/r"`, s, s)
			return append(both("command", "Kernel.Ingest", `{"uri":`+uri+`}`, ""), both("query", "FileSystem.Resolve", `{"uri":"r","base":`+uri+`}`, "")...)
		}},
		callWith("vault", "Memory.Set", `{"key":"vault/k","value":%s}`),
		callWith("vault, in an object", "Memory.Set", `{"key":"/vault/k","value":{"a":[%s]}}`),
		callWith("vault, by an escaped name", "Memory.Set", `{"\u0076alue":%s,"key":"\u0076ault/k"}`),
		callWith("vault, a bad key", "Memory.Set", `{"key":"vault//..","value":%s}`),
		callWith("vault, denied", "Memory.Set", `{"pid":1,"key":"vault/k","value":%s}`),
		callWith("vault as nobody", "Memory.Set", `{"pid":99999,"key":"vault/k","value":%s}`),
		{name: "seal, spelt out", frames: func(s string) []string { return both("command", "Crypto.Seal", `{"plaintext":`+spelt(s)+`}`, "") }},
		{name: "text too long", frames: func(s string) []string {
			return both("command", "Crypto.Seal", `{"plaintext":`+quote(s+strings.Repeat("x", 8000))+`}`, "")
		}},
		{name: "seal under a key", frames: func(s string) []string {
			keyed++
			key := fmt.Sprintf(`,"idempotencyKey":"k%d"`, keyed)
			data := `{"plaintext":` + quote(s) + `}`
			return append(append(both("command", "Crypto.Seal", data, key), both("command", "Crypto.Seal", data, key)...),
				both("command", "Crypto.Seal", `{"plaintext":`+quote(s+s)+`}`, key)...)
		}},
		{name: "vault under a key", frames: func(s string) []string {
			keyed++
			key := fmt.Sprintf(`,"idempotencyKey":"v%d"`, keyed)
			return append(both("command", "Memory.Set", `{"key":"vault/k","value":`+quote(s)+`}`, key),
				both("command", "Memory.Set", `{"key":"vault/k","value":[`+quote(s)+`]}`, key)...)
		}},
		{name: "open", frames: func(s string) []string { return both("query", "Crypto.Open", `{"value":`+quote(seal(s))+`}`, "") }},
		{name: "open what is no text", frames: func(s string) []string {
			return both("query", "Crypto.Open", `{"value":`+quote(seal(s+"\xff"))+`}`, "")
		}},
		{name: "open another's", frames: func(s string) []string {
			return both("query", "Crypto.Open", `{"value":`+quote(seal(s))+`,"aad":"other"}`, "")
		}},
		{name: "open, denied", frames: func(s string) []string {
			return both("query", "Crypto.Open", `{"pid":1,"value":`+quote("pwenc:v1:"+s)+`}`, "")
		}},
		{name: "keep what is sealed", frames: func(s string) []string {
			return both("command", "Memory.Set", `{"key":"vault/k","value":`+quote(seal(s))+`}`, "")
		}},
	}
}

// faults returns frames that never become a call.
func faults() []way {
	line := func(name, pattern string) way {
		return way{name: name, frames: func(s string) []string { return []string{fmt.Sprintf(pattern, quote(s))} }}
	}
	ways := []way{
		line("no JSON", `secret: %s`),
		line("cut short", `{"kind":"command","type":"Crypto.Seal","data":{"plaintext":%s`),
		line("twice", `{"kind":"command","type":"Crypto.Seal","data":{"plaintext":"a","plaintext":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("more behind it", `{"kind":"command","type":"Crypto.Seal","data":{},"metadata":{"id":"m","timestamp":1}} %s`),
		line("no metadata", `{"kind":"command","type":"Crypto.Seal","data":{"plaintext":%s}}`),
		line("bad metadata", `{"kind":"command","type":"Crypto.Seal","data":{"plaintext":"a"},"metadata":{"id":[%s],"timestamp":1}}`),
		line("no data", `{"kind":"command","type":"Crypto.Seal","plaintext":%s,"metadata":{"id":"m","timestamp":1}}`),
		line("a reply", `{"kind":"reply","type":"Crypto.Open","data":{"plaintext":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("an error", `{"kind":"error","type":"Crypto.Seal","data":{"code":500,"message":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("an event", `{"kind":"event","type":"Crypto.Sealed","data":{"plaintext":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("no such syscall", `{"kind":"command","type":"Crypto.Whisper","data":{"plaintext":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("seal as a query", `{"kind":"query","type":"Crypto.Seal","data":{"plaintext":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("open as a command", `{"kind":"command","type":"Crypto.Open","data":{"value":%s},"metadata":{"id":"m","timestamp":1}}`),
		line("vault as a query", `{"type":"query","name":"Memory.Set","payload":{"key":"vault/k","value":%s}}`),
		line("too deep", `{"kind":"command","type":"Crypto.Seal","data":`+strings.Repeat("[", 80)+`%s`+strings.Repeat("]", 80)+`}`),
		line("too long", `{"kind":"command","type":"Crypto.Seal","data":{"plaintext":%s,"x":"`+strings.Repeat("x", 1<<20)+`"}}`),
		{name: "no UTF-8", frames: func(s string) []string {
			return []string{`{"kind":"command","type":"Crypto.Seal","data":{"plaintext":"` + "\xff" + quote(s)[1:] + `},"metadata":{"id":"m","timestamp":1}}`}
		}},
	}
	as := func(name, pattern string) { w := line(name, pattern); w.shown = true; ways = append(ways, w) }
	as("a kind", `{"kind":%s,"type":"Crypto.Seal","data":{},"metadata":{"id":"m","timestamp":1}}`)
	as("a type", `{"kind":"command","type":%s,"data":{},"metadata":{"id":"m","timestamp":1}}`)
	as("a member", `{"kind":"command","type":"Crypto.Seal","data":{"plaintext":"a",%s:1},"metadata":{"id":"m","timestamp":1}}`)
	return ways
}

// misfits returns calls of every syscall with data that its schema refuses: the secret in place of each member, in a form
// that the member does not accept, and as the name of an unknown member.
func misfits(t *testing.T) (ways []way) {
	t.Helper()
	for _, row := range schema.Syscalls() {
		if row.Internal {
			continue
		}
		add := func(name, pattern string, shown bool) {
			if _, fault := row.Input().Decode(fmt.Appendf(nil, pattern, `"x"`)); fault == nil {
				return // it is valid, and is journaled
			}
			ways = append(ways, way{name: row.Type + " " + name, shown: shown, frames: func(s string) []string {
				return both(row.Kind.String(), row.Type, fmt.Sprintf(pattern, quote(s)), "")
			}})
		}
		var input struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		testkit.Must(t, json.Unmarshal(row.Input().AppendJSONSchema(nil), &input))
		for member := range input.Properties {
			add(member, `{"`+member+`":%s,"none":0}`, false)
			add(member+" in an object", `{"`+member+`":{"a":%s},"none":0}`, false)
		}
		add("unknown member", `{%s:%[1]s}`, true)
		add("no object", `[%s]`, false)
	}
	return ways
}
