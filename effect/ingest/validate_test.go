package ingest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema/fault"
)

// TestValidate checks the proof of a resource under several policies.
func TestValidate(t *testing.T) {
	t.Parallel()
	const text = "some text"
	ours, theirs := key(t, 1), key(t, 2)
	good := sign(t, ours, ingest.Namespace, text)
	proof := ingest.Policy{Trusted: trusting(ours), Proof: true}
	plain := ingest.Policy{Trusted: trusting(ours)}
	nobody := ingest.Policy{}
	open := ingest.Policy{Trusted: trusting(ours), Unpinned: true}
	for name, c := range map[string]struct {
		policy    ingest.Policy
		address   string // "": below root
		sig       string
		integrity string
		late      bool
		want      string
		fails     error
	}{
		"local":                              {policy: plain, want: ingest.Local},
		"local, integrity":                   {policy: plain, integrity: sri("sha256", text), want: ingest.ByIntegrity},
		"local, wrong integrity":             {policy: plain, integrity: sri("sha256", "x"), fails: fault.IngestIntegrity},
		"local, signed":                      {policy: plain, sig: good, want: ingest.BySignature},
		"local, signed, integrity":           {policy: plain, sig: good, integrity: sri("sha256", text), want: ingest.ByIntegrity},
		"local, signed, wrong integrity":     {policy: plain, sig: good, integrity: sri("sha256", "x"), fails: fault.IngestIntegrity},
		"local, bad signature":               {policy: plain, sig: sign(t, ours, ingest.Namespace, "x"), fails: fault.IngestSignature},
		"local, bad signature, integrity":    {policy: plain, sig: sign(t, ours, ingest.Namespace, "x"), integrity: sri("sha256", text), fails: fault.IngestSignature},
		"local, signed for something else":   {policy: plain, sig: sign(t, ours, "file", text), fails: fault.IngestSignature},
		"local, no signature at all":         {policy: plain, sig: "no signature", fails: fault.IngestSignature},
		"local, an empty signature":          {policy: plain, sig: "\n", fails: fault.IngestSignature},
		"local, a stranger's":                {policy: plain, sig: sign(t, theirs, ingest.Namespace, text), want: ingest.Local},
		"local, nobody trusted":              {policy: nobody, sig: good, want: ingest.Local},
		"local, key expired":                 {policy: plain, sig: good, late: true, want: ingest.Local},
		"proof":                              {policy: proof, fails: fault.IngestUnproven},
		"proof, signed":                      {policy: proof, sig: good, want: ingest.BySignature},
		"proof, integrity":                   {policy: proof, integrity: sri("sha512", text), want: ingest.ByIntegrity},
		"proof, a stranger's":                {policy: proof, sig: sign(t, theirs, ingest.Namespace, text), fails: fault.IngestUnproven},
		"proof, key expired":                 {policy: proof, sig: good, late: true, fails: fault.IngestUnproven},
		"proof, a pin is not enough":         {policy: proof, address: "https://h.example/v1.2.3/a", fails: fault.IngestUnproven},
		"web":                                {policy: plain, address: "https://h.example/a", fails: fault.IngestUnproven},
		"web, branch":                        {policy: plain, address: "https://h.example/main/a", fails: fault.IngestUnproven},
		"web, pinned":                        {policy: plain, address: "https://h.example/v1.2.3/a", want: ingest.ByPin},
		"web, integrity":                     {policy: plain, address: "https://h.example/a", integrity: sri("sha256", text), want: ingest.ByIntegrity},
		"web, pinned, wrong integrity":       {policy: plain, address: "https://h.example/v1.2.3/a", integrity: sri("sha256", "x"), fails: fault.IngestIntegrity},
		"web, signed":                        {policy: plain, address: "https://h.example/a", sig: good, want: ingest.BySignature},
		"web, a stranger's":                  {policy: plain, address: "https://h.example/a", sig: sign(t, theirs, ingest.Namespace, text), fails: fault.IngestUnproven},
		"web, unpinned":                      {policy: open, address: "https://h.example/a", want: ingest.None},
		"web, unpinned, bad signature":       {policy: open, address: "https://h.example/a", sig: sign(t, ours, ingest.Namespace, "x"), fails: fault.IngestSignature},
		"web, unpinned, wrong integrity":     {policy: open, address: "https://h.example/a", integrity: "sha256-", fails: fault.IngestIntegrity},
		"web, an address with a question":    {policy: plain, address: "https://h.example/a?v=1", fails: fault.IngestUnproven},
		"web, a question with a tag is none": {policy: plain, address: "https://h.example/a?/v1.2.3/", fails: fault.IngestUnproven},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, w, at := map[string]string{"a": text}, web{c.address: text}, "os:///a"
			if c.address != "" {
				at = c.address
			}
			if c.sig != "" {
				files["a.sig"], w[c.address+".sig"] = c.sig, c.sig
			}
			p := pipeline(t, files, w)
			p.Policy = c.policy
			f, err := p.Fetch(t.Context(), at, "")
			testkit.Must(t, err)
			now := noon
			if c.late {
				now = noon.Add(time.Minute)
			}
			v, err := p.Validate(f, c.integrity, now)
			if c.fails != nil {
				failed(t, err, "validate", c.fails)
				return
			}
			if err != nil || v.Proof() != c.want {
				t.Fatalf("%v, want %s", err, c.want)
			}
			if signer := v.Signer(); (signer != "") != (c.sig == good && c.policy.Trusted != nil && !c.late) {
				t.Errorf("signed by %q", signer)
			}
		})
	}
}

// TestStrangerIsNamed checks that the error has the fingerprint of the untrusted key, so that the operator can trust it.
func TestStrangerIsNamed(t *testing.T) {
	t.Parallel()
	theirs := key(t, 2)
	p := pipeline(t, map[string]string{"a": "x", "a.sig": sign(t, theirs, ingest.Namespace, "x")}, nil)
	p.Policy.Proof = true
	_, err := p.Run(t.Context(), ingest.Request{URI: "a", Now: noon})
	if !errors.Is(err, fault.IngestUnproven) || !strings.Contains(err.Error(), theirs.Key().Fingerprint()) {
		t.Errorf("%v does not name %s", err, theirs.Key().Fingerprint())
	}
}

// TestPinned checks which URLs are pinned.
func TestPinned(t *testing.T) {
	t.Parallel()
	commit := strings.Repeat("0123456789", 4)
	for address, want := range map[string]bool{
		"https://h.example/o/r/v1.2.3/a.md":           true,
		"https://h.example/o/r/1.2.3/a.md":            true,
		"https://h.example/v1.2.3-rc.1+b/a/b.md":      true,
		"https://h.example/x/std@0.224.0/a.md":        true,
		"https://h.example/o/r/" + commit + "/a.md":   true,
		"https://h.example/o/r@" + commit + "/a.md":   true,
		"https://h.example/o/r/main/a.md":             false,
		"https://h.example/o/r/v1/a.md":               false,
		"https://h.example/o/r/v1.2/a.md":             false,
		"https://h.example/o/r/v1.2.3":                false,
		"https://h.example/o/rv1.2.3/a.md":            false,
		"https://1.2.3.4/a.md":                        false,
		"https://h.example/1.2.3.4/a.md":              false,
		"https://h.example/" + commit[1:] + "/a.md":   false,
		"https://h.example/a.md?x=/v1.2.3/b":          false,
		"os:///v1.2.3/a.md":                           false,
		"https://h.example/" + commit + "0" + "/a.md": false,
	} {
		if got := ingest.Pinned(address); got != want {
			t.Errorf("%s: pinned is %v", address, got)
		}
	}
}
