package memory_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/kernel/domaintest"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/quote"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 1024)
	for _, tc := range []struct{ written, stored, err string }{
		{written: "notes/1", stored: "/notes/1"},
		{written: "/notes/1", stored: "/notes/1"},
		{written: "a", stored: "/a"},
		{written: "...", stored: "/..."},
		{written: ".hidden/x..y", stored: "/.hidden/x..y"},
		{written: "ä/日本 語", stored: "/ä/日本 語"},
		{written: "e\u0301/\U0001F600", stored: "/e\u0301/\U0001F600"},
		{written: `quo"te\slash`, stored: `/quo"te\slash`},
		{written: "proc", stored: "/proc"},
		{written: "processes/1", stored: "/processes/1"},
		{written: long, stored: "/" + long},
		{written: "/" + long, stored: "/" + long},
		{
			written: long + "k",
			err:     "must have at most 1024 bytes, not 1025: store a long text as the value, under a short key",
		},
		{written: "/", err: empty("/")},
		{written: "//a", err: empty("//a")},
		{written: "a/", err: empty("a/")},
		{written: "a//b", err: empty("a//b")},
		{written: ".", err: dots(".", ".")},
		{written: "a/./b", err: dots(".", "a/./b")},
		{written: "/a/..", err: dots("..", "/a/..")},
		{written: "proc/../secret", err: dots("..", "proc/../secret")},
		{written: "a\x00b", err: `must not have control characters: "a\x00b"`},
		{written: "a\nb", err: `must not have control characters: "a\nb"`},
		{written: "a\x7f", err: `must not have control characters: "a\x7f"`},
		{written: "a\u0085", err: `must not have control characters: "a\u0085"`},
	} {
		t.Run(fmt.Sprintf("%.20q", tc.written), func(t *testing.T) {
			t.Parallel()
			d := newDomain(t, nil)
			key := quoted(tc.written)
			_, err := run(t, d, 1, home, "Memory.Set", `{"key":`+key+`,"value":1}`)
			if tc.err != "" {
				want := "Invalid input: key " + tc.err
				domaintest.WantError(t, err, fault.InvalidInput, want)
				_, err = run(t, d, 1, home, "Memory.Get", `{"key":`+key+`}`)
				domaintest.WantError(t, err, fault.InvalidInput, want)
				_, err = run(t, d, 1, home, "Memory.Delete", `{"key":`+key+`}`)
				domaintest.WantError(t, err, fault.InvalidInput, want)
				return
			}
			testkit.Must(t, err)
			list, err := run(t, d, 1, home, "Memory.List", `{}`)
			if want := `{"keys":[` + quoted(tc.stored) + `]}`; err != nil || list != want {
				t.Errorf("list %s, %v, want %s", list, err, want)
			}
		})
	}
}

func empty(key string) string {
	return fmt.Sprintf("must not have an empty segment: %q: write it like notes/1, without a slash at the end or two in a row", key)
}

func dots(segment, key string) string {
	return fmt.Sprintf("must not have a segment %q: %q: keys are whole names, nothing is resolved", segment, key)
}

func quoted(s string) string { return string(schema.AppendString(nil, s)) }

// FuzzKey checks the rules of PROTOCOL 5 on any key, and that an accepted key is one key in every spelling.
func FuzzKey(f *testing.F) {
	for _, key := range []string{"notes/1", "/notes/1", "//", "a/../b", "proc/x", "vault/x", "\x00", "a/", strings.Repeat("é", 513), "a\u202e", "proc/\u202e"} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if key == "" || !utf8.ValidString(key) {
			return
		}
		d := newDomain(t, nil)
		_, err := run(t, d, 1, home, "Memory.Set", `{"key":`+quoted(key)+`,"value":"pwenc:v1:"}`)
		plain := strings.TrimPrefix(key, "/")
		good := len(plain) <= 1024 && !strings.ContainsFunc(plain, quote.Hidden)
		for _, segment := range strings.Split(plain, "/") {
			good = good && segment != "" && segment != "." && segment != ".."
		}
		switch {
		case !good:
			if err := fault.Of(err); err == nil || err.Kind != fault.InvalidInput || err.Field != "key" {
				t.Errorf("%q: %v, want an error about the key", key, err)
			}
		case strings.HasPrefix(plain, "proc/"):
			if err == nil || fault.Of(err).Kind != fault.Forbidden {
				t.Errorf("%q: %v, want it to be read-only", key, err)
			}
		case err != nil:
			t.Errorf("%q: %v", key, err)
		default:
			for _, spelling := range []string{plain, "/" + plain} {
				if got, err := run(t, d, 1, home, "Memory.Get", `{"key":`+quoted(spelling)+`}`); err != nil || got != `"pwenc:v1:"` {
					t.Errorf("%q: %s, %v", spelling, got, err)
				}
			}
		}
	})
}

// No new value gets a key with an invisible character; one from an older journal can be read, listed and removed.
func TestHiddenCharactersInKeys(t *testing.T) {
	t.Parallel()
	for _, r := range []rune{0x202e, 0x2066, 0x200b, 0x200d, 0xfeff, 0xad, 0x2028, 0xe000, 0xfe0f, 0x3164, 0xe0041} {
		t.Run(fmt.Sprintf("%U", r), func(t *testing.T) {
			t.Parallel()
			d := newDomain(t, nil)
			key := "notes/a" + string(r) + "b"
			_, err := run(t, d, 1, home, "Memory.Set", `{"key":`+quoted(key)+`,"value":1}`)
			domaintest.WantError(t, err, fault.InvalidInput,
				fmt.Sprintf("Invalid input: key must not have the character %U, which is not visible or changes how the text around it is shown: leave it out", r))
			domaintest.Apply(d, request(t, 1, home, "Memory.Set", `{"key":`+quoted(key)+`,"value":1}`), []byte(`{"success":true}`)) // as a replay does
			if got, err := run(t, d, 1, home, "Memory.Get", `{"key":`+quoted(key)+`}`); err != nil || got != "1" {
				t.Errorf("get: %s, %v", got, err)
			}
			if _, err := run(t, d, 1, home, "Memory.Delete", `{"key":`+quoted(key)+`}`); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
}
