package fetch

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// unpack returns the decompressed body of an answer. It limits both the compressed and the decompressed length. packed reports whether
// the body was compressed.
func (c *call) unpack(resp *http.Response, host string) (body io.Reader, packed bool, err error) {
	if resp.ContentLength > c.limits.WireBytes {
		return nil, false, tooLarge(host, "a body", c.limits.WireBytes)
	}
	body = bounded(&patient{r: resp.Body, call: c, host: host}, c.limits.WireBytes)
	switch encoding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		packed = true
		body, err = gzip.NewReader(body)
		switch {
		case errors.Is(err, io.EOF):
			return http.NoBody, true, nil // an empty body, which some servers mark as gzip
		case err != nil:
			return nil, true, err
		}
	default:
		return nil, false, upstream("%s compressed its answer in a way that was not requested", host)
	}
	return bounded(body, c.limits.BodyBytes), packed, nil
}

// bounded returns a reader that fails with an *http.MaxBytesError after most bytes.
func bounded(r io.Reader, most int64) io.Reader {
	return http.MaxBytesReader(nil, io.NopCloser(r), most)
}

// patient is a reader that cancels the call if one read takes longer than Limits.Idle. The time between reads does not count.
type patient struct {
	r    io.Reader
	call *call
	host string
}

func (p *patient) Read(b []byte) (int, error) {
	idle := p.call.limits.Idle
	timer := time.AfterFunc(idle, func() {
		p.call.cancel(fault.HTTPTimeout.New("%s stopped sending for %v: try again later", p.host, idle))
	})
	defer timer.Stop()
	return p.r.Read(b)
}

// collect reads the body to its end: into resp.Body if it is short text, else to the writer of Request.Spill.
func (c *call) collect(body io.Reader, host string, resp *Response) error {
	most := c.limits.InlineBytes
	head, err := io.ReadAll(io.LimitReader(body, int64(most)+1))
	if err != nil {
		return c.explain(host, err)
	}
	if fitsLine(head, most) {
		resp.Body, resp.Size = head, int64(len(head))
		return nil
	}
	if c.req.Spill == nil {
		return tooLarge(host, "a body that is not text, or", int64(most))
	}
	to, err := c.req.Spill()
	if err != nil {
		return c.explain(host, c.fail("keep the body", err))
	}
	resp.Spilled = true
	resp.Size, err = io.Copy(sink{to, c}, io.MultiReader(bytes.NewReader(head), body))
	if err != nil {
		return c.explain(host, err)
	}
	return nil
}

// fitsLine reports whether a body is UTF-8 and has at most most bytes as a JSON string.
func fitsLine(b []byte, most int) bool {
	return len(b) <= most && utf8.Valid(b) && len(schema.AppendString(nil, string(b)))-len(`""`) <= most
}

// sink is a writer that cancels the call if the caller's writer fails.
type sink struct {
	w    io.Writer
	call *call
}

func (s sink) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if err != nil {
		err = s.call.fail("keep the body", err)
	}
	return n, err
}

// outgoing is the body of a request. done is closed when the transport closes the body, which may be after RoundTrip returns.
type outgoing struct {
	io.ReadCloser
	call *call
	once sync.Once
	done chan struct{}
}

func (o *outgoing) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		err = o.call.fail("read the request's body", err)
	}
	return n, err
}

func (o *outgoing) Close() (err error) {
	o.once.Do(func() {
		err = o.ReadCloser.Close()
		close(o.done)
	})
	return err
}
