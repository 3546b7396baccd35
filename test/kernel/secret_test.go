package kernel_test

import (
	"strings"
	"testing"

	"github.com/promptware-os/pwos/schema"
)

// letter is data with a member that nobody but its reader may see.
type letter struct {
	To   string       `json:"to" keep:"always" doc:"Who reads it."`
	Key  string       `json:"key" keep:"never" doc:"What it is sealed with."`
	Body schema.Value `json:"body" keep:"never" doc:"What it says."`
}

// TestRedact has a type leave its secrets out of what is recorded: all else stays as it was written, and of the secrets
// their names alone.
func TestRedact(t *testing.T) {
	t.Parallel()
	form := schema.TypeOf[letter]()
	for data, want := range map[string]string{
		`{"to":"a","key":"hidden","body":{"hidden":[1]}}`: `{"to":"a","key":"[redacted]","body":"[redacted]"}`,
		`{"body":"hidden", "to":"\u0061","key":""}`:       `{"body":"[redacted]","to":"\u0061","key":"[redacted]"}`,
		`{"k\u0065y":"hidden","to":"a","body":1}`:         `{"key":"[redacted]","to":"a","body":"[redacted]"}`,
	} {
		if _, fault := form.Decode([]byte(data)); fault != nil {
			t.Fatalf("%s: %v", data, fault)
		}
		if got := string(form.Redact([]byte(data), nil, false)); got != want {
			t.Errorf("%s: got %s, want %s", data, got, want)
		}
		if got := form.Redact([]byte(data), nil, false); strings.Contains(string(got), "hidden") {
			t.Errorf("%s shows its secret: %s", data, got)
		}
	}
}

// request is data with HTTP headers.
type request struct {
	To      string            `json:"to" keep:"always" doc:"Who reads it."`
	Headers map[string]string `json:"headers,omitzero" keep:"headers" doc:"What goes with it."`
}

// TestRedactHeaders leaves out what a header lets somebody in with, however its name is written, and nothing else; what was
// left out once is left out again without a change, so that a start comes to the same sum.
func TestRedactHeaders(t *testing.T) {
	t.Parallel()
	form := schema.TypeOf[request]()
	for data, want := range map[string]string{
		`{"to": "a"}`: `{"to": "a"}`,
		`{"to":"a", "headers": {"Accept": "x", "Idempotency-Key":"y"}}`:        `{"to":"a", "headers": {"Accept": "x", "Idempotency-Key":"y"}}`,
		`{"to": "a", "headers":{"AUTHORIZATION":"hidden", "accept":"\u0061"}}`: `{"to":"a","headers":{"AUTHORIZATION":"[redacted]","accept":"\u0061"}}`,
		`{"headers":{"c\u006fokie":"hidden"},"to":"a"}`:                        `{"headers":{"cookie":"[redacted]"},"to":"a"}`,
		`{"to":"a","headers":{"X-Api-Key":"hidden","x-auth-token":"hidden"}}`:  `{"to":"a","headers":{"X-Api-Key":"[redacted]","x-auth-token":"[redacted]"}}`,
		`{"to":"a","headers":{"authorization":"pwenc:v1:eyJhIjoxfQ"}}`:         `{"to":"a","headers":{"authorization":"pwenc:v1:eyJhIjoxfQ"}}`,
		`{"to":"a","headers":{"authorization":"pwenc:v1:hidden"}}`:             `{"to":"a","headers":{"authorization":"[redacted]"}}`,
		`{"to":"a","headers":{"CB-ACCESS-PASSPHRASE":"hidden"}}`:               `{"to":"a","headers":{"CB-ACCESS-PASSPHRASE":"[redacted]"}}`,
		`{"to":"a","headers":{"Cf-Access-Jwt-Assertion":"hidden"}}`:            `{"to":"a","headers":{"Cf-Access-Jwt-Assertion":"[redacted]"}}`,
		`{"to":"a","headers":{"X-Auth-Key":"hidden","x_api_key":"hidden"}}`:    `{"to":"a","headers":{"X-Auth-Key":"[redacted]","x_api_key":"[redacted]"}}`,
		`{"to":"a","headers":{"X-Session-ID":"hidden","Some-Key":"hidden"}}`:   `{"to":"a","headers":{"X-Session-ID":"[redacted]","Some-Key":"[redacted]"}}`,
		`{"to":"authorization","headers":{}}`:                                  `{"to":"authorization","headers":{}}`,
	} {
		if _, fault := form.Decode([]byte(data)); fault != nil {
			t.Fatalf("%s: %v", data, fault)
		}
		for once := []byte(data); ; {
			got := form.Redact(once, nil, true)
			if string(got) != want {
				t.Errorf("%s: got %s, want %s", once, got, want)
			}
			if string(once) == want {
				break
			}
			once = []byte(want)
		}
	}
}

// link is data with a URL.
type link struct {
	To  string `json:"to" keep:"always" doc:"Who reads it."`
	URL string `json:"url" keep:"url" doc:"Where it is."`
}

// TestRedactURL leaves out who logs in with a URL, and with what, however it is written, and nothing else.
func TestRedactURL(t *testing.T) {
	t.Parallel()
	form := schema.TypeOf[link]()
	for url, want := range map[string]string{
		`"https://me:hidden@a.example/p?q#f"`:   `"https://[redacted]@a.example/p?q#f"`,
		`"https://hidden@a.example"`:            `"https://[redacted]@a.example"`,
		`"https:\/\/me:hid\u0064en\u0040a/"`:    `"https://[redacted]@a/"`,
		`"https://me:hid@den@a.example/"`:       `"https://[redacted]@a.example/"`,
		`"https://me:hidden\\@a.example/"`:      `"https://[redacted]@a.example/"`,
		`"//me:hidden@a"`:                       `"//[redacted]@a"`,
		`"https://me:hid/den@a.example/p"`:      `"https://[redacted]@a.example/p"`,
		`"https://me:hid?den@a.example/p"`:      `"https://[redacted]@a.example/p"`,
		`"https:/me:hidden@a.example/p"`:        `"https:/[redacted]@a.example/p"`,
		`"https:////me:hidden@a.example/p"`:     `"https:////[redacted]@a.example/p"`,
		`"me:hidden@a.example/p"`:               `"me:[redacted]@a.example/p"`,
		`"HTTP://me:hidden@a.example"`:          `"HTTP://[redacted]@a.example"`,
		`"https://[::1]:80@hidden:x@a.example"`: `"https://[redacted]@a.example"`,
		`"https://[::1]:80/@me"`:                `"https://[::1]:80/@me"`,
		`"http://a.example:80/@me"`:             `"http://a.example:80/@me"`,
		`"https://a.example/@me?to=b@c#d@e"`:    `"https://a.example/@me?to=b@c#d@e"`,
		`"https://a.example?to=b@c"`:            `"https://a.example?to=b@c"`,
		`"os:///skills/@me"`:                    `"os:///skills/@me"`,
		`"./?to=ftp://u@h/p"`:                   `"./?to=ftp://u@h/p"`,
		`"skills//a@2/b"`:                       `"skills//a@2/b"`,
		`"./a@2"`:                               `"./a@2"`,
		`"https:\/\/a.example"`:                 `"https:\/\/a.example"`,
		`""`:                                    `""`,
	} {
		data, want := `{"to":"x@y","url":`+url+`}`, `{"to":"x@y","url":`+want+`}`
		if _, fault := form.Decode([]byte(data)); fault != nil {
			t.Fatalf("%s: %v", data, fault)
		}
		once := form.Redact([]byte(data), nil, true)
		if twice := form.Redact(once, nil, true); string(once) != want || string(twice) != want {
			t.Errorf("%s: got %s, then %s, want %s", data, once, twice, want)
		}
	}
}

// TestSealedAsIs stores what is sealed already: it is no secret, and the record is what it is made anew from.
func TestSealedAsIs(t *testing.T) {
	t.Parallel()
	d := start(t)
	c := d.dial(t)
	c.call("Memory.Set", `{"key":"vault/k","value":"pwenc:v1:abc"}`, nil)
	d.restart(t)
	if a := d.dial(t).ask("Memory.Get", `{"key":"vault/k"}`); string(a.Data) != `"pwenc:v1:abc"` {
		t.Errorf("got %s", a.Data)
	}
}
