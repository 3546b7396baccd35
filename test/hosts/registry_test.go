package hosts_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// registry serves a package as the registry of npm does: its document at /NAME, and the archive that this names. It returns its port.
func registry(t *testing.T, name string, files map[string]string) string {
	t.Helper()
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	packed := tar.NewWriter(zipped)
	for path, text := range files {
		testkit.Must(t, packed.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(text))}))
		_, err := packed.Write([]byte(text))
		testkit.Must(t, err)
	}
	testkit.Must(t, packed.Close())
	testkit.Must(t, zipped.Close())
	hash := sha512.Sum512(archive.Bytes())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch file := "/" + name + "/-/" + name + "-1.0.0.tgz"; r.URL.Path {
		case "/" + name:
			dist := object{"tarball": "http://" + r.Host + file, "integrity": "sha512-" + base64.StdEncoding.EncodeToString(hash[:])}
			answer(w, object{
				"name": name, "dist-tags": object{"latest": "1.0.0"},
				"versions": object{"1.0.0": object{"name": name, "version": "1.0.0", "main": "index.js", "dist": dist}},
			})
		case file:
			_, _ = w.Write(archive.Bytes()) // npm notices what is missing
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	at, err := url.Parse(server.URL)
	testkit.Must(t, err)
	return at.Port()
}
