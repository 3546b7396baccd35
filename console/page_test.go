package console_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// TestVendored checks that the vendored files match the checksums of their npm packages in page/vendor/SUMS, and have their licenses.
func TestVendored(t *testing.T) {
	t.Parallel()
	listed := make(map[string]string)
	for line := range strings.Lines(testkit.ReadFile(t, "page/vendor/SUMS")) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok && !strings.HasPrefix(line, "#") {
			listed[name] = sum
		}
	}
	for _, path := range testkit.Value(filepath.Glob("page/vendor/*"))(t) {
		name := filepath.Base(path)
		if name == "SUMS" {
			continue
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(testkit.ReadFile(t, path)))); listed[name] != sum {
			t.Errorf("%s: its SHA-256 is %s, SUMS has %q", name, sum, listed[name])
		}
		delete(listed, name)
	}
	for name := range listed {
		t.Errorf("%s is listed, and not there", name)
	}
	for _, library := range []string{"preact", "htm", "uplot"} {
		if _, err := os.Stat("page/vendor/" + library + ".LICENSE"); err != nil {
			t.Error(err)
		}
	}
}

// TestPage checks that the scripts of the page do not parse text as markup, and import only files of the page.
func TestPage(t *testing.T) {
	t.Parallel()
	banned := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|dangerously|document\.write|\beval\b|new Function|DOMParser|createContextualFragment|https?:`)
	imports := regexp.MustCompile(`(?m)^import .*from '([^']+)';`)
	known := map[string]bool{"preact": true, "preact/hooks": true, "htm": true, "uplot": true}
	files := append(testkit.Value(filepath.Glob("page/*.js"))(t), testkit.Value(filepath.Glob("page/views/*.js"))(t)...)
	if len(files) < 10 {
		t.Fatalf("only %d scripts", len(files))
	}
	for _, path := range files {
		text := testkit.ReadFile(t, path)
		if found := banned.FindString(text); found != "" {
			t.Errorf("%s has %s", path, found)
		}
		for _, match := range imports.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), match[1])); err != nil && !known[match[1]] {
				t.Errorf("%s imports %s, which is not there", path, match[1])
			}
		}
	}
}

// TestFiles checks that the files of the page are served with their media types, and that no other file is served.
func TestFiles(t *testing.T) {
	t.Parallel()
	s := serveOf(t, away)
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/page/app.js": "text/javascript; charset=utf-8", "/page/base.css": "text/css; charset=utf-8",
		"/page/vendor/htm.mjs": "text/javascript; charset=utf-8", "/page/icon.svg": "image/svg+xml",
	} {
		if a := s.ask(t, "GET "+path, ""); a.status != 200 || a.header.Get("Content-Type") != kind {
			t.Errorf("%s: %d %s", path, a.status, a.header.Get("Content-Type"))
		}
	}
	for _, path := range []string{"/page/", "/page/index.html", "/page/vendor/SUMS", "/page/vendor", "/page/%2e%2e/server.js", "/page//app.js.map", "/server.go", "/api/", "/favicon.ico"} {
		if a := s.ask(t, "GET "+path, ""); a.status != 404 && a.status != 307 && a.status != 301 {
			t.Errorf("%s: %d %.80s", path, a.status, a.body)
		}
	}
}
