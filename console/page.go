package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"path"
)

//go:embed page
var pages embed.FS

// page is the HTML document and its Content-Security-Policy.
type page struct {
	html   []byte
	policy string
}

// kinds maps the extensions of the served files to their media types.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".mjs": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// readPage reads the page. The policy allows its one inline script, the import map, by its hash.
func readPage() (*page, error) {
	html, err := pages.ReadFile("page/index.html")
	if err != nil {
		return nil, fmt.Errorf("read page: %w", err)
	}
	_, rest, ok := bytes.Cut(html, []byte(`<script type="importmap">`))
	imports, _, closed := bytes.Cut(rest, []byte(`</script>`))
	if !ok || !closed {
		return nil, errors.New("read page: it has no map of imports")
	}
	sum := sha256.Sum256(imports)
	return &page{html: html, policy: "default-src 'none'; script-src 'self' 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; " +
		"style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
		"require-trusted-types-for 'script'; trusted-types 'none'"}, nil
}

// index handles GET /.
func (p *page) index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(p.html) // the peer may have disconnected
}

// file handles GET /page/...
func (p *page) file(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	kind, ok := kinds[path.Ext(name)]
	if !ok {
		notFound(w, r)
		return
	}
	content, err := pages.ReadFile(path.Join("page", name))
	if err != nil {
		notFound(w, r)
		return
	}
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(content) // the peer may have disconnected
}

// notFound answers a request for an unknown path.
func notFound(w http.ResponseWriter, _ *http.Request) {
	refuse(w, http.StatusNotFound, "console.not_found", "there is nothing here")
}
