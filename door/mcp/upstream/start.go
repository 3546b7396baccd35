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
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/promptware-os/pwos/schema/fault"
)

// Start starts a server, and returns the connection to it.
type Start func(context.Context) (sdk.Transport, error)

// Program returns a Start that runs a program as a child of this process.
func Program(command []string, stderr io.Writer) Start {
	return func(context.Context) (sdk.Transport, error) {
		program := exec.Command(command[0], command[1:]...)
		program.Stderr = stderr
		return &sdk.CommandTransport{Command: program, TerminateDuration: endTime}, nil
	}
}

// Remote returns a Start that connects over streamable HTTP to an endpoint of the kernel, which forwards to the server and adds the
// credential. It follows no redirects.
func Remote(endpoint string) Start {
	web := &http.Client{
		Transport:     through{http.DefaultTransport},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(context.Context) (sdk.Transport, error) {
		return &sdk.StreamableClientTransport{Endpoint: endpoint, HTTPClient: web}, nil
	}
}

// through is a transport that converts the kernel's own answers to errors.
type through struct{ next http.RoundTripper }

// RoundTrip sends a request, and repeats it if the kernel reports that it has a new token.
func (t through) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err == nil && resp.Header.Get(errorHeader) == string(fault.UpstreamToken) && (r.GetBody != nil || r.Body == nil) {
		_ = resp.Body.Close() // the header has the reason
		again := r.Clone(r.Context())
		if r.GetBody != nil {
			if again.Body, err = r.GetBody(); err != nil {
				return nil, err
			}
		}
		resp, err = t.next.RoundTrip(again)
	}
	if err != nil || resp.Header.Get(errorHeader) == "" {
		return resp, err
	}
	defer func() { _ = resp.Body.Close() }() // a failed close loses nothing
	text, err := io.ReadAll(io.LimitReader(resp.Body, longestMessage))
	if err != nil {
		return nil, err
	}
	return nil, &away{strings.TrimSpace(string(text)), resp.StatusCode == http.StatusServiceUnavailable}
}

// errorHeader is the header that marks the kernel's own answers.
const errorHeader = "Pwos-Error"

// away is the error of a server that is not available.
type away struct {
	why     string
	nothing bool // the call was not made
}

func (a *away) Error() string { return a.why }

// Digest returns the SHA-256 of a file in the form of a pin, sha256:HEX.
func Digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("read executable: %w", err)
	}
	defer func() { _ = f.Close() }() // a failed close loses nothing
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("read executable: %w", err)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}
