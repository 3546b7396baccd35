package ingest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestCheckIntegrity checks that a digest of the strongest algorithm must match.
func TestCheckIntegrity(t *testing.T) {
	t.Parallel()
	const text = "alert('Hello, world.');"
	good256, good384, good512 := sri("sha256", text), sri("sha384", text), sri("sha512", text)
	bad256, bad384, bad512 := sri("sha256", "x"), sri("sha384", "x"), sri("sha512", "x")
	for _, c := range []struct {
		integrity string
		holds     bool
	}{
		// The example of the W3C specification.
		{"sha384-H8BRh8j48O9oYatfu5AZzq6A9RINhZO5H16dQZngK7T62em8MUt1FLm52t+eX6xO", true},
		{good256, true},
		{good384, true},
		{good512, true},
		{" " + good256 + "\n", true},
		{good256 + "?ct=text/plain", true},
		{bad256 + " " + good256, true},
		{bad256 + " " + good384, true},
		{bad384 + " " + good512 + " " + bad256, true},
		{bad256, false},
		{bad384, false},
		{bad512, false},
		{good256 + " " + bad384, false},
		{good384 + " " + bad512, false},
		{"", false},
		{" ", false},
		{"sha256", false},
		{"sha256-", false},
		{"sha256-?", false},
		{"md5-XUFAKrxLKna5cZ2REBfFkg==", false},
		{"md5-XUFAKrxLKna5cZ2REBfFkg== " + good256, false},
		{strings.ToUpper(good256[:6]) + good256[6:], false},
		{"sha512-" + good256[7:], false},
		{"sha256-" + good256[7:20], false},
		{strings.TrimRight(good256, "="), false},
		{good256 + "=", false},
		{good256 + "," + good256, false},
	} {
		err := ingest.CheckIntegrity(c.integrity, []byte(text))
		if (err == nil) != c.holds || err != nil && !errors.Is(err, fault.IngestIntegrity) {
			t.Errorf("%q: %v, want it to hold: %v", c.integrity, err, c.holds)
		}
	}
}
