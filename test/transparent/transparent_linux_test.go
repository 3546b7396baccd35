package transparent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestPrograms runs each situation as it is and in pwos run, as a user and as root: output, end and files are the same, except where
// a row of the table in docs/agents.md says otherwise.
func TestPrograms(t *testing.T) {
	t.Parallel()
	bin := filepath.Dir(testkit.Program(t, "pwos"))
	for _, p := range people(t) {
		p.bin = bin
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			out, err := p.command(t.Context(), "pwos run -- true && pwos status --json").CombinedOutput()
			if testkit.Must(t, err); !strings.Contains(string(out), `"sandbox":"namespaces+landlock`) {
				t.Skipf("this machine lacks what the table in docs/agents.md takes for given: %s", out)
			}
			for i, s := range all() {
				t.Run(fmt.Sprint(i), func(t *testing.T) {
					t.Parallel()
					if s.slow && os.Getenv("PWOS_LONG") == "" {
						t.Skip("takes long: needs PWOS_LONG=1")
					}
					if missing := p.lacks(t, s.needs); missing != "" {
						t.Skipf("not on this machine: %q", missing)
					}
					p.compare(t, p.path(fmt.Sprint("home/p", i)), s)
				})
			}
		})
	}
}

// all returns all situations.
func all() []situation {
	return slices.Concat(situations(), pipeSituations(), gitSituations(), differences(), slowSituations())
}

// compare fails the test if a situation differs inside, or no longer does.
func (p *person) compare(t *testing.T, dir string, s situation) {
	t.Helper()
	outside := p.see(t, dir, strings.ReplaceAll(s.line, "RUN ", ""))
	inside := p.see(t, dir, strings.ReplaceAll(s.line, "RUN ", "pwos run -- "))
	differs := slices.Contains(allowed, s.differs) && (s.only == "" || s.only == p.name)
	switch how := difference(outside, inside); {
	case !differs && outside != inside:
		t.Errorf("%s\n%s", s.line, how)
	case differs && outside == inside:
		t.Errorf("%s\nis now the same inside: it needs no row %q", s.line, s.differs)
	case differs && !regexp.MustCompile("^(?:"+s.how+")$").MatchString(how):
		t.Errorf("%s\ndiffers otherwise than its row %q says, by %q:\n%s", s.line, s.differs, s.how, how)
	}
}

// difference returns the lines that were seen only outside, and only inside.
func difference(outside, inside seen) string {
	var text strings.Builder
	out, in := strings.Split(outside.String(), "\n"), strings.Split(inside.String(), "\n")
	for _, line := range out {
		if !slices.Contains(in, line) {
			fmt.Fprintf(&text, "outside: %s\n", line)
		}
	}
	for _, line := range in {
		if !slices.Contains(out, line) {
			fmt.Fprintf(&text, "inside:  %s\n", line)
		}
	}
	if text.Len() == 0 {
		return fmt.Sprintf("outside: %s\ninside: %s", outside, inside) // in another order
	}
	return text.String()
}
