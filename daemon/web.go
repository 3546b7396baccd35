package daemon

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"time"

	"github.com/promptware-os/pwos/actors"
	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// web does what Http.Fetch asks for.
type web struct {
	fetcher  *fetch.Fetcher
	blobs    *blob.Store
	identity *identity
	log      *slog.Logger
}

// newFetcher makes what fetches as the configuration says.
func newFetcher(cfg *config.HTTP) (*fetch.Fetcher, error) {
	o := fetch.Options{UserAgent: "pwos/" + Version(), Limits: fetch.Limits{WireBytes: cfg.MaxBodyBytes, BodyBytes: cfg.MaxBodyBytes}}
	for _, text := range cfg.Allow {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow: %w", err)
		}
		o.Allow = append(o.Allow, prefix)
	}
	for _, text := range cfg.AllowHosts {
		host, err := fetch.ParseHost(text)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.allow_hosts: %w", err)
		}
		o.AllowHosts = append(o.AllowHosts, host)
	}
	if cfg.CAFile != "" {
		text, err := os.ReadFile(cfg.CAFile)
		if err != nil {
			return nil, fmt.Errorf("configuration: http.ca_file: %w", err)
		}
		if o.RootCAs, err = x509.SystemCertPool(); err != nil {
			o.RootCAs = x509.NewCertPool()
		}
		if !o.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("configuration: http.ca_file: %s holds no certificate", cfg.CAFile)
		}
	}
	return fetch.New(o), nil
}

func newWeb(fetcher *fetch.Fetcher, blobs *blob.Store, identity *identity, log *slog.Logger) *web {
	return &web{fetcher: fetcher, blobs: blobs, identity: identity, log: log.With("component", "http")}
}

// checkFetch is what kernel/http asks before a fetch is begun: it refuses as the fetch itself would, as far as that needs
// no network.
func checkFetch(fetcher *fetch.Fetcher, log *slog.Logger) func(*kernel.Call, *schema.HTTPFetchInput) *schema.Error {
	return func(call *kernel.Call, in *schema.HTTPFetchInput) *schema.Error {
		never := func(context.Context, string) (string, error) { return "", errors.New("a check opens nothing") }
		policy, fault := policyOf(call.PID, call.Token, call.Tick, never, log)
		if fault != nil {
			return fault
		}
		req := requestOf(in, policy)
		switch {
		case in.Body != nil:
			req.Body = fetch.Bytes([]byte(*in.Body))
		case in.BodyRef != nil: // its length is known when it is opened
			req.Body = &fetch.Body{}
		}
		return fetcher.Check(req)
	}
}

// requestOf is what a call asks for, but for its body.
func requestOf(in *schema.HTTPFetchInput, policy fetch.Policy) fetch.Request {
	req := fetch.Request{URL: in.URL, Headers: in.Headers, Policy: policy}
	if in.Method != nil {
		req.Method = *in.Method
	}
	if in.Timeout != nil {
		req.Timeout = time.Duration(*in.Timeout * float64(time.Millisecond))
	}
	return req
}

// fetch is the runner of Http.Fetch.
func (w *web) fetch(ctx context.Context, job *actors.Job) ([]byte, error) {
	in := job.Do.(*schema.HTTPFetchInput)
	policy, fault := w.policy(job)
	if fault != nil {
		return nil, fault
	}
	req := requestOf(in, policy)
	out := &schema.HTTPFetchOutput{}
	if err := w.body(job, in, &req, out); err != nil {
		return nil, err
	}
	var spilled *blob.Writer
	defer func() {
		if spilled != nil {
			spilled.Abort()
		}
	}()
	req.Spill = func() (io.Writer, error) {
		var err error
		spilled, err = w.blobs.Create(job.Origin)
		return spilled, err
	}
	resp, err := w.fetcher.Do(ctx, req)
	if err != nil {
		w.log.Debug("fetch failed", "pid", job.PID, "conn", job.Conn, "id", job.ID)
		return nil, err
	}
	out.Status, out.Headers, out.Size, out.URL, out.Via = int64(resp.Status), resp.Headers, resp.Size, resp.URL, resp.Via
	sum := sha256.Sum256(resp.Body)
	if resp.Spilled {
		kept, err := spilled.Commit()
		if err != nil {
			return nil, err
		}
		if err := w.blobs.Give(job.PID, kept.Pointer); err != nil {
			return nil, fmt.Errorf("show blob to pid %d: %w", job.PID, err)
		}
		sum = kept.Digest
		out.BodyRef = (*schema.BlobRef)(&kept.Pointer)
	} else {
		body := string(resp.Body)
		out.Body = &body
	}
	out.Digest = digest(sum[:])
	return schema.Marshal(out)
}

// digest writes a SHA-256 as subresource integrity does.
func digest(sum []byte) string { return "sha256-" + base64.StdEncoding.EncodeToString(sum) }

// policy is what the caller of a job may do.
func (w *web) policy(job *actors.Job) (fetch.Policy, *schema.Error) {
	return policyOf(job.PID, job.Token, job.Tick, w.open, w.log)
}

// opener opens a sealed value.
type opener = func(ctx context.Context, sealed string) (string, error)

// policyOf is what a process may do with its token: everything as the operator, else what the token says.
func policyOf(pid int64, token *kernel.Token, tick int64, open opener, log *slog.Logger) (fetch.Policy, *schema.Error) {
	if pid == kernel.Operator {
		return fetch.Policy{AnyHost: true, PlainHTTP: true, Open: open}, nil
	}
	grants := token.Fetch(tick)
	if len(grants) == 0 {
		return fetch.Policy{}, kernel.NoHost(pid, token, tick)
	}
	var all *fetch.Policy
	for i := range grants {
		one := grantPolicy(pid, &grants[i], open, log)
		one.Else, all = all, &one
	}
	all.Advise = func(flags string, enough func(*fetch.Policy) bool) string {
		of := token.HostLacking(pid, tick, func(grant *schema.HTTPGrant) bool {
			one := grantPolicy(pid, grant, open, log)
			return enough(&one)
		})
		return fmt.Sprintf(`allow it too with "pwos cap grant %d --add Http.Fetch %s"`, of, flags)
	}
	return *all, nil
}

// grantPolicy is what one grant of a process's allows.
func grantPolicy(pid int64, grant *schema.HTTPGrant, open opener, log *slog.Logger) fetch.Policy {
	p := fetch.Policy{PlainHTTP: grant.Plain}
	for _, text := range grant.Hosts {
		host, err := fetch.ParseHost(text)
		if err != nil {
			log.Warn("a granted host cannot be read", "pid", pid, "host", text)
			continue // it names nobody
		}
		p.Hosts = append(p.Hosts, host)
	}
	if grant.Open {
		p.Open = open
	}
	return p
}

// open opens a sealed header value with the kernel's key.
func (w *web) open(ctx context.Context, sealed string) (string, error) {
	sealer, err := w.identity.await(ctx)
	if err != nil {
		return "", err
	}
	text, _, err := sealer.Open(sealed)
	if err != nil {
		return "", err
	}
	defer clear(text)
	return string(text), nil
}

// body gives the request its body. One that comes by reference is read as it is sent, and its digest noted.
func (w *web) body(job *actors.Job, in *schema.HTTPFetchInput, req *fetch.Request, out *schema.HTTPFetchOutput) error {
	switch {
	case in.Body != nil:
		req.Body = fetch.Bytes([]byte(*in.Body))
	case in.BodyRef == nil:
	case in.BodyRef.Scheme == "data":
		_, data, err := blob.Data(in.BodyRef.Pointer(), schema.MaxEventLine)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		req.Body, out.SentDigest = fetch.Bytes(data), digest(sum[:])
	default:
		r, err := w.blobs.OpenFor(job.PID, job.Origin, in.BodyRef.Pointer())
		if err != nil {
			return err
		}
		size := r.Size()
		if err := r.Close(); err != nil {
			return fmt.Errorf("close blob: %w", err)
		}
		req.Body = &fetch.Body{Size: size, Open: func() (io.ReadCloser, error) {
			again, err := w.blobs.OpenFor(job.PID, job.Origin, in.BodyRef.Pointer())
			if err != nil {
				return nil, err
			}
			return &sent{Reader: again, sum: sha256.New(), to: &out.SentDigest}, nil
		}}
	}
	return nil
}

// sent notes the digest of what was read of a blob, at its end.
type sent struct {
	*blob.Reader
	sum hash.Hash
	to  *string
}

func (s *sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	s.sum.Write(p[:n])
	return n, err
}

func (s *sent) Close() error {
	*s.to = digest(s.sum.Sum(nil))
	return s.Reader.Close()
}
