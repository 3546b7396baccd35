package tomlname_test

import (
	"testing"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/promptware-os/pwos/internal/tomlname"
)

// TestNames: each setting is named as its writer did, with its line.
func TestNames(t *testing.T) {
	t.Parallel()
	data := []byte("a = 1\n\n[b]\nc-1.d = 2\n\"e.f\" = 3\n\"\" = 4\n")
	var p unstable.Parser
	p.Reset(data)
	var table []string
	got := map[string]int{}
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind == unstable.Table {
			table = tomlname.Words(nil, e)
			continue
		}
		got[tomlname.Join(tomlname.Words(table, e))] = tomlname.Line(data, e)
	}
	for name, line := range map[string]int{"a": 1, "b.c-1.d": 4, `b."e.f"`: 5, `b.""`: 6} {
		if got[name] != line {
			t.Errorf("%s is in line %d, want %d", name, got[name], line)
		}
	}
	if len(got) != 4 || p.Error() != nil {
		t.Errorf("%v, %v", got, p.Error())
	}
}
