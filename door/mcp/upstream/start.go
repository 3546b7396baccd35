package upstream

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Start returns the way to a new life of a server.
type Start func(context.Context) (sdk.Transport, error)

// Program starts a server that is a program, as a child of this process.
func Program(command []string, stderr io.Writer) Start {
	return func(context.Context) (sdk.Transport, error) {
		program := exec.Command(command[0], command[1:]...)
		program.Stderr = stderr
		return &sdk.CommandTransport{Command: program, TerminateDuration: endTime}, nil
	}
}

// Remote connects to a server that speaks streamable HTTP at an endpoint, through the proxy that the environment names. Requests bear
// the token, unless it is empty; they follow no redirects, since elsewhere it is nobody's.
func Remote(endpoint, token string) Start {
	web := &http.Client{
		Transport:     &bearing{token, http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(context.Context) (sdk.Transport, error) {
		return &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: web}, nil
	}
}

// bearing adds a bearer token to requests.
type bearing struct {
	token string
	next  http.RoundTripper
}

func (b *bearing) RoundTrip(r *http.Request) (*http.Response, error) {
	if b.token != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+b.token)
	}
	return b.next.RoundTrip(r)
}

// Digest is the SHA-256 of a file, as a pin has it.
func Digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read executable: %w", err)
	}
	defer func() { _ = f.Close() }() // it was read
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read executable: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
