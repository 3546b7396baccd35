package daemon_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
)

// The entry of the longest line that the configuration allows fits a line of the journal for any content. An entry that
// does not fit would end the kernel, and any client could cause one.
func TestLongestLineIsJournaled(t *testing.T) {
	t.Parallel()
	const longest = 2 << 20
	settings := config.Default(func(string) string { return "" }, 1, "/")
	settings.Limits.LineBytes = longest
	testkit.Must(t, settings.Check())
	settings.Limits.LineBytes++
	if err := settings.Check(); err == nil {
		t.Errorf("the configuration allows a line of %d bytes, which this test does not try", settings.Limits.LineBytes)
	}
	r := start(t, func(c *config.Config) { c.Limits.LineBytes = longest })
	p := dial(t, r.KernelSocket)
	// The content is answered, and quoted in an error. Of all bytes that a line may have unescaped, this one becomes
	// longest.
	for _, text := range []string{strings.Repeat("x", longest-1000), strings.Repeat("\x7f", longest-1000)} {
		p.want("command", "Syscall.Echo", `{"message":"`+text+`"}`, "echo")
		for name, said := range map[string]schema.Kind{"correlation": schema.KindReply, "idempotencyKey": schema.KindError} {
			p.send(fmt.Sprintf(`{"kind":"command","type":"Syscall.Echo","data":{"message":"a"},"metadata":{"id":"q","timestamp":0,%q:"%s"}}`+"\n", name, text[4000:]))
			if m := p.next(); m.Kind != said {
				t.Errorf("%s: got %s %.100s", name, m.Kind, m.Data)
			}
		}
	}
	p.want("query", "Audit.Verify", `{}`, `"ok":true`)
}
