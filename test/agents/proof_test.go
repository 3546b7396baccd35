package agents_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/effect/ingest"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/rootfs"
)

// server serves https: to daemons with the returned settings.
func server(t *testing.T, serve http.HandlerFunc) (address, settings string) {
	t.Helper()
	s := httptest.NewTLSServer(serve)
	t.Cleanup(s.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return s.URL, fmt.Sprintf("[http]\nallow = [\"127.0.0.1/32\"]\nca_file = %q\n", ca)
}

// TestIngestWeb: content from the web must be pinned, from a host that the process may access, unless the configuration
// says otherwise.
func TestIngestWeb(t *testing.T) {
	t.Parallel()
	const text = "from afar"
	web, settings := server(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/gone.md"), strings.HasSuffix(r.URL.Path, ".sig"):
			http.NotFound(w, r)
		case strings.HasSuffix(r.URL.Path, "/teapot.md"):
			w.WriteHeader(http.StatusTeapot)
		case strings.HasSuffix(r.URL.Path, "/huge.md"):
			for range 64 {
				_, _ = w.Write(make([]byte, 1<<16))
			}
		default:
			_, _ = w.Write([]byte(text))
		}
	})
	p := newTree(t, settings, nil)
	p.start(t)
	c := p.dial(t)
	pinned := `,"integrity":"` + rootfs.Digest([]byte(text)) + `"`
	c.refused(403, rootfs.Digest([]byte(text)), "Kernel.Ingest", ingestAs(0, web+"/main/a.md", ""))
	for uri, more := range map[string]string{web + "/main/a.md": pinned, web + "/v1.2.3/a.md": ""} {
		if got := c.call("Kernel.Ingest", ingestAs(0, uri, more)); member(t, got, "content") != `"from afar"` || member(t, got, "uri") != `"`+uri+`"` {
			t.Errorf("got %s", got)
		}
	}
	c.refused(422, "validate: ", "Kernel.Ingest", ingestAs(0, web+"/v1.2.3/a.md", `,"integrity":"`+rootfs.Digest([]byte("other"))+`"`))
	c.refused(404, "fetch: ", "Kernel.Ingest", ingestAs(0, web+"/v1.2.3/gone.md", ""))
	c.refused(502, "418", "Kernel.Ingest", ingestAs(0, web+"/v1.2.3/teapot.md", ""))
	c.refused(507, "too large", "Kernel.Ingest", ingestAs(0, web+"/v1.2.3/huge.md", ""))
	c.refused(422, "", "Kernel.Ingest", ingestAs(0, strings.Replace(web, "https", "http", 1)+"/v1.2.3/a.md", ""))
	c.refused(403, "may fetch from no host", "Kernel.Ingest", ingestAs(c.agent(""), web+"/v1.2.3/a.md", ""))
	c.call("Kernel.Ingest", ingestAs(c.agent(`,"http":{"hosts":["127.0.0.1:*"]}`), web+"/v1.2.3/a.md", ""))

	open := newTree(t, settings+"[ingest]\nunpinned = true\n", nil)
	open.start(t)
	if got := open.dial(t).call("Kernel.Ingest", ingestAs(0, web+"/main/a.md", "")); member(t, got, "proof") != `"none"` {
		t.Errorf("got %s", got)
	}
}

// TestTrustedKeys: if proof is required, a signature file next to a resource is accepted while its key is in trusted_keys
// next to the configuration.
func TestTrustedKeys(t *testing.T) {
	t.Parallel()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	raw, err := ssh.NewSignerFromKey(private)
	testkit.Must(t, err)
	signer, err := access.NewSigner(raw, "test")
	testkit.Must(t, err)
	signature, err := signer.Sign(context.Background(), ingest.Namespace, []byte("signed"))
	testkit.Must(t, err)
	p := newTree(t, "[ingest]\nproof = true\n", map[string]string{
		"a.md": "signed", "a.md.sig": signature.Armor(), "b.md": "not signed", "c.md": "changed", "c.md.sig": signature.Armor(),
	})
	p.start(t)
	c := p.dial(t)
	c.refused(403, "not trusted", "Kernel.Ingest", `{"uri":"a.md"}`)
	trusted := p.Path("trusted_keys")
	testkit.Must(t, os.WriteFile(trusted, []byte(signer.Key().String()+"\n"), 0o600))
	got := c.call("Kernel.Ingest", `{"uri":"a.md"}`)
	if member(t, got, "proof") != `"signature"` {
		t.Errorf("got %s", got)
	}
	pid := c.agent("")
	c.call("Kernel.Ingest", ingestAs(pid, "a.md", ""))
	if got, want := member(t, c.identity(pid), "signer"), `"`+signer.Key().Fingerprint()+`"`; got != want {
		t.Errorf("signed by %s, want %s", got, want)
	}
	c.refused(403, "nothing proves", "Kernel.Ingest", `{"uri":"b.md"}`)
	c.refused(403, "is not valid", "Kernel.Ingest", `{"uri":"c.md"}`)
	testkit.Must(t, os.Remove(trusted))
	c.refused(403, "not trusted", "Kernel.Ingest", `{"uri":"a.md"}`)
}
