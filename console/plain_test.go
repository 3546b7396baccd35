package console_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/quote"
)

// TestPlain: the page escapes text and JSON as the server does. It needs Node.
func TestPlain(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	texts := []string{"plain", "\x1b[2J", "\U000e0041", "\u200e41", `\u001b`, `\\u001B`, "\\\x1b", `C:\Users\u00`, `\U000E0041, \U000e00`, "a\\\\\u202e\u2028\u0085é\\", `\U0041`, "\\\\\U000e0041\\u0041"}
	var want [][]string
	for _, text := range texts {
		want = append(want, []string{quote.Text(text), quote.JSON(text)})
	}
	// A copy, since node takes a file with this name for a module.
	source := string(testkit.Value(os.ReadFile("page/text.js"))(t))
	module := testkit.Dir(t) + "/text.mjs"
	testkit.WriteFile(t, module, source)
	out, err := exec.CommandContext(testkit.Context(t), node, "--input-type=module", "-e", //nolint:gosec // constants
		`import { plain, plainJSON } from '`+module+`'; console.log(JSON.stringify(`+string(testkit.Value(json.Marshal(texts))(t))+`.map((text) => [plain(text), plainJSON(text)])))`).Output()
	testkit.Must(t, err)
	var got [][]string
	testkit.Must(t, json.Unmarshal(out, &got))
	for i, text := range texts {
		if got[i][0] != want[i][0] || got[i][1] != want[i][1] {
			t.Errorf("%q is %q on the page, want %q", text, got[i], want[i])
		}
	}
}
