package policy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/policy"
)

// TestDocs: the rules in docs/policy.md are valid, and decide the calls below them as described.
func TestDocs(t *testing.T) {
	t.Parallel()
	budgets, err := os.ReadFile("../docs/budgets.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```cedar\n(.*?)```").FindAllStringSubmatch(string(budgets), -1) {
		compile(t, block[1])
	}
	text, err := os.ReadFile("../docs/policy.md")
	testkit.Must(t, err)
	var j *policy.Judge
	calls := 0
	for _, block := range regexp.MustCompile("(?s)```(cedar|calls)\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if block[1] == "cedar" {
			j = judge(compile(t, block[2]))
			j.Processes = agents{8: {PID: 8, AgentID: "researcher", Origin: "os:///"}}
			j.Forms.URL = func(raw string) (string, string, bool) {
				u := strings.Replace(strings.ToLower(raw), ":443", "", 1)
				host, _, _ := strings.Cut(strings.TrimPrefix(u, "https://"), "/")
				return u, host, true
			}
			continue
		}
		for line := range strings.Lines(block[2]) {
			calls++
			verdict, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			want := ""
			if verdict == "refused" {
				want, rest, _ = strings.Cut(rest, " ")
			}
			typ, data, _ := strings.Cut(rest, " ")
			got := ""
			if d := j.Decide(call(t, 8, typ, data)); d.Rule != nil {
				got = d.Rule.ID
			}
			if got != want {
				t.Errorf("%s: decided by %q", strings.TrimSpace(line), got)
			}
		}
	}
	if calls < 10 {
		t.Errorf("%d calls in docs/policy.md", calls)
	}
}
