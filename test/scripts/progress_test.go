package scripts_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// A replay of a long journal prints its progress on stderr, and one of a short journal nothing.
func TestProgressOfReplay(t *testing.T) {
	t.Parallel()
	p := settle(t)
	dir := p.Path("home/.local/state/pwos/journal")
	testkit.Must(t, os.MkdirAll(dir, 0o700))
	testkit.Must(t, os.Chmod(p.Path("home/.local/state/pwos"), 0o700))
	log, _, err := journal.Open(journal.Options{Dir: dir})
	testkit.Must(t, err)
	const entries = 70_000
	for seq := 1; seq <= entries; seq++ {
		log.Append(&journal.Entry{
			Origin: "https://pwos.local/", Conn: "c-1", Outcome: []byte(`{"kind":"reply","data":{"success":true}}`),
			Request: fmt.Appendf(nil, `{"kind":"command","type":"Memory.Set","data":{"key":"n","value":%d},"metadata":{"id":"m-%d","timestamp":1}}`, seq, seq),
		})
		if seq%4096 == 0 {
			testkit.Must(t, log.Flush())
		}
	}
	testkit.Must(t, log.Close())
	for until, want := range map[int]string{entries: "65536 of 70000 entries read", 1000: ""} {
		cmd := p.command(t.Context(), "replay", "--until", fmt.Sprint(until), "--get", "n")
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != fmt.Sprint(until) || !strings.Contains(said.String(), want) || want == "" && said.Len() > 0 {
			t.Errorf("until %d: %s (%v), stderr %q, want %q", until, out, err, said.String(), want)
		}
	}
	p.pwos(t, "shutdown")
}
