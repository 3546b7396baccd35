package ingest_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

const coder = `---
name: coder
description: Writes code.
model: any
skills:
  - ../skills/search.md
  - uri: os:///skills/plan.md
    name: planning
    description: How to plan.
tools: [os/tools/sum]
---
You write code.
`

func home() map[string]string {
	return map[string]string{
		"agents/coder.md":  coder,
		"skills/search.md": "---\nname: search\ndescription: Finds things.\n---\nSearch.\n",
		"skills/plan.md":   "Plan.\n",
		"tools/sum":        "\x00asm\xff",
		"tools/sum.json":   `{"name":"sum","description":"Adds numbers.","input":{"type":"array"}}`,
		"plain.md":         "no front matter",
		"bad/yaml.md":      "---\na: [\n---\n",
		"bad/type.md":      "---\nname: 1\n---\n",
		"bad/list.md":      "---\nskills: x\n---\n",
		"bad/item.md":      "---\nskills: [1]\n---\n",
		"bad/member.md":    "---\nskills: [{uri: a, url: b}]\n---\n",
		"bad/uri.md":       "---\nskills: ['../../etc/passwd']\n---\n",
		"bad/scheme.md":    "---\ntools: ['file:///etc/passwd']\n---\n",
		"bad/many.md":      "---\nskills: [" + strings.Repeat("a/b,", ingest.MaxReferences+1) + "]\n---\n",
		"bad/missing.md":   "---\nskills: [no/such]\n---\n",
		"bad/tool.md":      "---\ntools: [bad/tool]\n---\n",
		"bad/tool":         "x",
		"bad/tool.json":    `{"description":1}`,
		"bad/unpinned.md":  "---\nskills: ['https://h.example/a.md']\n---\n",
		"bad/binary.md":    "a\xff",
		"bad/nul.md":       "a\x00",
		"bad/mark.md":      "\ufeff---\nname: x\n---\n",
		"toml.md":          "+++\nname = 'toml'\n+++\ntext",
		"empty.md":         "---\nname:\nskills:\n---\n",
		"large.md":         strings.Repeat("a", ingest.DefaultMaxBytes+1),
		"dir.sig/x":        "a signature that is a directory",
		"dir":              "x",
	}
}

// TestRun checks the result of Run for a valid resource.
func TestRun(t *testing.T) {
	t.Parallel()
	p := pipeline(t, home(), nil)
	r, err := p.Run(t.Context(), ingest.Request{URI: "./coder.md", Base: "os:///agents/other.md", Integrity: sri("sha384", coder), Now: noon})
	testkit.Must(t, err)
	want := &ingest.Loaded{
		Identity: schema.Identity{
			ContextID: r.ContextID, URI: "os:///agents/coder.md", Digest: sri("sha256", coder), Name: "coder", Proof: ingest.ByIntegrity,
		},
		FrontMatter: []byte(`{"name":"coder","description":"Writes code.","model":"any","skills":["../skills/search.md",` +
			`{"uri":"os:///skills/plan.md","name":"planning","description":"How to plan."}],"tools":["os/tools/sum"]}`),
		Content: "You write code.\n", Description: "Writes code.",
		Skills: []ingest.Reference{
			{URI: "os:///skills/search.md"},
			{URI: "os:///skills/plan.md", Name: "planning", Description: "How to plan."},
		},
		Tools: []ingest.Reference{{URI: "os:///tools/sum"}},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
	id := r.Identity
	if !strings.HasPrefix(id.ContextID, "ctx-") {
		t.Errorf("%+v", id)
	}
	// A second ingest returns the same context id; the same bytes under another name have a different one.
	again, err := p.Run(t.Context(), ingest.Request{URI: "agents/coder.md", Integrity: want.Digest, Now: noon})
	if err != nil || again.Identity != id {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestRunFails checks the errors of each phase, and that Run then returns no resource.
func TestRunFails(t *testing.T) {
	t.Parallel()
	p := pipeline(t, home(), nil)
	for name, c := range map[string]struct {
		phase string
		want  error
	}{
		"../x":               {"fetch", fault.NameInvalid},
		"file:///etc/passwd": {"fetch", fault.NameInvalid},
		"no/such":            {"fetch", fault.FileNotFound},
		"agents":             {"fetch", fault.FileNotRegular},
		"agents/":            {"fetch", fault.FileNotRegular},
		"large.md":           {"fetch", fault.FileTooLarge},
		"dir":                {"fetch", fault.FileNotRegular},
		"https://h.example/": {"fetch", fault.FileNotFound},
		"bad/yaml.md":        {"load", fault.IngestInvalid},
		"bad/type.md":        {"load", fault.IngestInvalid},
		"bad/list.md":        {"load", fault.IngestInvalid},
		"bad/item.md":        {"load", fault.IngestInvalid},
		"bad/member.md":      {"load", fault.IngestInvalid},
		"bad/uri.md":         {"load", fault.IngestInvalid},
		"bad/scheme.md":      {"load", fault.IngestInvalid},
		"bad/many.md":        {"load", fault.IngestInvalid},
		"bad/binary.md":      {"load", fault.IngestNotText},
		"bad/nul.md":         {"load", fault.IngestNotText},
		"bad/mark.md":        {"load", fault.IngestNotText},
	} {
		r, err := p.Run(t.Context(), ingest.Request{URI: name, Now: noon})
		if r != nil {
			t.Errorf("%s: %+v", name, r)
		}
		failed(t, err, c.phase, c.want)
		if why, bad := map[string]string{"bad/uri.md": "above root", "bad/scheme.md": "only os:///"}[name]; bad && !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v does not say %q", name, err, why)
		}
	}
	r, err := p.Run(t.Context(), ingest.Request{URI: "plain.md", Integrity: "sha256-", Now: noon})
	if r != nil {
		t.Errorf("%+v", r)
	}
	failed(t, err, "validate", fault.IngestIntegrity)
}

// TestLoadForms checks resources with TOML front matter, with none, and with null members.
func TestLoadForms(t *testing.T) {
	t.Parallel()
	p := pipeline(t, home(), nil)
	for name, want := range map[string][3]string{
		"toml.md":  {`{"name":"toml"}`, "text", "toml"},
		"plain.md": {`{}`, "no front matter", ""},
		"empty.md": {`{"name":null,"skills":null}`, "", ""},
	} {
		r, err := p.Run(t.Context(), ingest.Request{URI: name, Now: noon})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if l := r; string(l.FrontMatter) != want[0] || l.Content != want[1] || l.Name != want[2] || l.Proof != ingest.Local {
			t.Errorf("%s: %+v", name, l)
		}
	}
}

// TestWeb checks that a web resource is limited in size, and not fetched if there is no Web or the context is done.
func TestWeb(t *testing.T) {
	t.Parallel()
	p := pipeline(t, nil, web{"https://h.example/v1.0.0/a.md": "---\nskills: [./b.md, c/d]\n---\nx"})
	r, err := p.Run(t.Context(), ingest.Request{URI: "https://H.example/v1.0.0/a.md", Now: noon})
	testkit.Must(t, err)
	want := []ingest.Reference{{URI: "https://h.example/v1.0.0/b.md"}, {URI: "os:///c/d"}}
	if diff := cmp.Diff(want, r.Skills); diff != "" || r.Proof != ingest.ByPin {
		t.Errorf("%s\n%s", r.Proof, diff)
	}
	p.Web = func(context.Context, string, int64) ([]byte, error) {
		return make([]byte, ingest.DefaultMaxBytes+1), nil
	}
	_, err = p.Run(t.Context(), ingest.Request{URI: "https://h.example/a", Now: noon})
	failed(t, err, "fetch", fault.FileTooLarge)
	p.Web = nil
	_, err = p.Run(t.Context(), ingest.Request{URI: "https://h.example/a", Now: noon})
	failed(t, err, "fetch", fault.IngestNoWeb)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = p.Run(ctx, ingest.Request{URI: "https://h.example/a", Now: noon})
	failed(t, err, "fetch", context.Canceled)
	// A server error for the signature file does not mean that there is none.
	broken := errors.New("broken")
	p.Web = func(_ context.Context, address string, _ int64) ([]byte, error) {
		if strings.HasSuffix(address, ".sig") {
			return nil, broken
		}
		return []byte("x"), nil
	}
	_, err = p.Run(t.Context(), ingest.Request{URI: "https://h.example/a", Integrity: sri("sha256", "x"), Now: noon})
	failed(t, err, "fetch", broken)
}

// TestHydrate checks the name and description of each listed resource.
func TestHydrate(t *testing.T) {
	t.Parallel()
	files := home()
	p := pipeline(t, files, web{"https://h.example/a.md": "x"})
	load := func(name string) *ingest.Loaded {
		r, err := p.Run(t.Context(), ingest.Request{URI: name, Now: noon})
		testkit.Must(t, err)
		return r
	}
	got, err := p.Hydrate(t.Context(), load("agents/coder.md"), noon)
	want := &schema.HydrateOutput{
		URI: "os:///agents/coder.md",
		Skills: []schema.HydratedItem{
			{URI: "os:///skills/search.md", Name: "search", Description: "Finds things.", Digest: sri("sha256", files["skills/search.md"])},
			{URI: "os:///skills/plan.md", Name: "planning", Description: "How to plan.", Digest: sri("sha256", files["skills/plan.md"])},
		},
		Tools: []schema.HydratedItem{
			{URI: "os:///tools/sum", Name: "sum", Description: "Adds numbers.", Digest: sri("sha256", files["tools/sum"]), Input: []byte(`{"type":"array"}`)},
		},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if got, err := p.Hydrate(t.Context(), load("plain.md"), noon); err != nil || len(got.Skills)+len(got.Tools) != 0 {
		t.Errorf("a resource that lists nothing: %v, %v", got, err)
	}
	for name, want := range map[string]error{"bad/missing.md": fault.FileNotFound, "bad/unpinned.md": fault.IngestUnproven} {
		if got, err := p.Hydrate(t.Context(), load(name), noon); !errors.Is(err, want) || got != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if got, err := p.Hydrate(t.Context(), load("bad/tool.md"), noon); err == nil || got != nil {
		t.Errorf("an invalid manifest: %v, %v", got, err)
	}
}
