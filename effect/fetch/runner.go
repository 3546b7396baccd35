package fetch

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"time"

	"github.com/promptware-os/pwos/blob"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Runner runs Http.Fetch with the policy of the caller's token. Its fields must be set before use.
type Runner struct {
	*Fetcher
	Blobs *blob.Store                                              // stores long bodies; not needed for Check
	Open  func(ctx context.Context, sealed string) (string, error) // opens a sealed header value
	Log   *slog.Logger
	// Judge returns a fault if the kernel's policy forbids the fetch of a redirect target by a job; may be nil.
	Judge func(job *kernel.Job, in *schema.HTTPFetchInput) *fault.Fault
}

// Check returns the fault of a call that Fetch refuses before it uses the network. The result depends only on the arguments and the
// configuration.
func (r *Runner) Check(call *kernel.Call, in *schema.HTTPFetchInput) *fault.Fault {
	policy, denied := r.policyOf(call.PID, call.Token, call.Tick)
	if denied != nil {
		return denied
	}
	req := requestOf(in, policy)
	switch {
	case in.Body != nil:
		req.Body = Bytes([]byte(*in.Body))
	case in.BodyRef != nil: // its length is not known before it is opened
		req.Body = &Body{}
	}
	failure := r.Fetcher.Check(req)
	if failure == nil && call.Probe != nil {
		call.Probe.Why(policy.grounds(req.URL))
	}
	return failure
}

// Fetch runs Http.Fetch.
func (r *Runner) Fetch(ctx context.Context, job *kernel.Job, in *schema.HTTPFetchInput) (*schema.HTTPFetchOutput, error) {
	policy, denied := r.Policy(job)
	if denied != nil {
		return nil, denied
	}
	if r.Judge != nil {
		policy.Redirected = func(url string) *fault.Fault {
			there := *in
			there.URL = url
			return r.Judge(job, &there)
		}
	}
	req, out := requestOf(in, policy), &schema.HTTPFetchOutput{}
	if err := r.body(job, in, &req, out); err != nil {
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
		spilled, err = r.Blobs.Create(job.PID, job.Origin)
		return spilled, err
	}
	resp, err := r.Do(ctx, req)
	if err != nil {
		r.Log.Debug("fetch failed", "pid", job.PID, "conn", job.Conn, "id", job.ID)
		return nil, err
	}
	out.Status, out.Headers, out.Size, out.URL, out.Via = int64(resp.Status), resp.Headers, resp.Size, resp.URL, resp.Via
	sum := sha256.Sum256(resp.Body)
	if resp.Spilled {
		kept, err := spilled.Commit()
		if err != nil {
			return nil, err
		}
		sum = kept.Digest
		out.BodyRef = (*schema.BlobRef)(&kept.Pointer)
	} else {
		body := string(resp.Body)
		out.Body = &body
	}
	out.Digest = schema.Integrity(sum[:])
	return out, nil
}

// Policy returns the policy of a job's caller. It returns a fault.HTTPForbidden if the caller may fetch from no host.
func (r *Runner) Policy(job *kernel.Job) (Policy, *fault.Fault) {
	return r.policyOf(job.PID, job.Token, job.Tick)
}

// policyOf returns the policy of a process with its token. The operator may fetch from all hosts.
func (r *Runner) policyOf(pid int64, token *kernel.Token, tick int64) (Policy, *fault.Fault) {
	if pid == kernel.Operator {
		return Policy{AnyHost: true, PlainHTTP: true, Open: r.Open}, nil
	}
	grants := token.Fetch(tick)
	if len(grants) == 0 {
		return Policy{}, kernel.NoHost(pid, token, tick)
	}
	var all *Policy
	for i := range grants {
		one := r.granted(pid, &grants[i])
		one.Else, all = all, &one
	}
	all.Advise = func(flags []string, enough func(*Policy) bool) string {
		of := token.HostLacking(pid, tick, func(grant *schema.HTTPGrant) bool {
			one := r.granted(pid, grant)
			return enough(&one)
		})
		return "allow it too with " + kernel.AddCommand(token, of, tick, append([]string{"Http.Fetch"}, flags...)...)
	}
	return *all, nil
}

// granted returns the policy of one grant of a process.
func (r *Runner) granted(pid int64, grant *schema.HTTPGrant) Policy {
	p := Policy{PlainHTTP: grant.Plain}
	for _, text := range grant.Hosts {
		host, err := ParseHost(text)
		if err != nil {
			r.Log.Warn("a granted host cannot be read", "pid", pid, "host", text)
			continue // an invalid pattern allows no host
		}
		p.Hosts = append(p.Hosts, host)
	}
	if grant.Open {
		p.Open = r.Open
	}
	return p
}

// requestOf returns the request of a call, without its body.
func requestOf(in *schema.HTTPFetchInput, policy Policy) Request {
	req := Request{URL: in.URL, Headers: in.Headers, Policy: policy}
	if in.Method != nil {
		req.Method = *in.Method
	}
	if in.Timeout != nil {
		req.Timeout = time.Duration(*in.Timeout * float64(time.Millisecond))
	}
	return req
}

// body sets the body of the request. A blob is read while it is sent, and its digest is set in out.
func (r *Runner) body(job *kernel.Job, in *schema.HTTPFetchInput, req *Request, out *schema.HTTPFetchOutput) error {
	switch {
	case in.Body != nil:
		req.Body = Bytes([]byte(*in.Body))
	case in.BodyRef == nil:
	case in.BodyContent != nil: // send exactly the content that was checked
		data, err := r.judgedBody(job, in)
		if err != nil {
			return err
		}
		req.Body, out.SentDigest = Bytes(data), in.BodyContent.Digest
	case in.BodyRef.Scheme == "data":
		_, data, err := blob.Data(in.BodyRef.Pointer(), schema.MaxEventLine)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		req.Body, out.SentDigest = Bytes(data), schema.Integrity(sum[:])
	default:
		first, err := r.Blobs.OpenFor(job.PID, job.Origin, in.BodyRef.Pointer())
		if err != nil {
			return err
		}
		size := first.Size()
		if err := first.Close(); err != nil {
			return fmt.Errorf("close blob: %w", err)
		}
		req.Body = &Body{Size: size, Open: func() (io.ReadCloser, error) {
			again, err := r.Blobs.OpenFor(job.PID, job.Origin, in.BodyRef.Pointer())
			if err != nil {
				return nil, err
			}
			return &sent{Reader: again, sum: sha256.New(), to: &out.SentDigest}, nil
		}}
	}
	return nil
}

// judgedBody returns the content of bodyRef. It returns an error if that differs from bodyContent.
func (r *Runner) judgedBody(job *kernel.Job, in *schema.HTTPFetchInput) ([]byte, error) {
	data, err := r.Blobs.Read(job.PID, job.Origin, in.BodyRef.Pointer(), schema.MaxJudgedBody)
	if err != nil {
		return nil, err
	}
	if *schema.ContentOf(data) != *in.BodyContent {
		return nil, kernel.Invalid("bodyContent", "is not what bodyRef refers to: nothing was sent")
	}
	return data, nil
}

// sent is a reader of a blob that stores the digest of the read bytes at Close.
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
	*s.to = schema.Integrity(s.sum.Sum(nil))
	return s.Reader.Close()
}
