package main_test

import (
	"testing"

	pwos "github.com/promptware-os/pwos/cmd/pwos"
)

func TestTable(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{}`:                          "",
		`[]`:                          "",
		`{"keys":[]}`:                 "",
		`null`:                        "null\n",
		`"text"`:                      "text\n",
		`12345678901234567890`:        "12345678901234567890\n",
		`{"b":"x y","a":[1,2],"ü":1}`: "a  [1,2]\nb  x y\nü  1\n",
		`{"keys":["/a","/b"]}`:        "/a\n/b\n",
		`[{"pid":10,"name":"x"},{"pid":7,"state":{"a":1}}]`: "NAME  PID  STATE\nx     10\n      7    {\"a\":1}\n",
		`[1,{"a":2}]`: "1\n{\"a\":2}\n",
	} {
		got, err := pwos.TableText([]byte(raw))
		if err != nil || got != want {
			t.Errorf("%s is shown as %q, want %q", raw, got, want)
		}
	}
}

// Nothing reaches a terminal that it would obey instead of show.
func TestShown(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"plain \"text\""`:         `plain "text"`,
		`"\u001b[2J"`:              `"\u001b[2J"`,
		"\"\u009b2J\"":             `"\u009b2J"`,
		"\"abc\u202edef\"":         `"abc\u202edef"`,
		"{\"a\":\"\u007f\u0085\"}": `{"a":"\u007f\u0085"}`,
	} {
		if got := pwos.Shown([]byte(raw)); got != want {
			t.Errorf("%s is shown as %q, want %q", raw, got, want)
		}
	}
}
