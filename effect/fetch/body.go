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

// unpack returns the body of an answer, bounded both as sent and as unpacked. packed says that it
// was compressed.
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
			return http.NoBody, true, nil // no body at all, which some servers call packed
		case err != nil:
			return nil, true, err
		}
	default:
		return nil, false, upstream("%s compressed its answer in a way that was not requested", host)
	}
	return bounded(body, c.limits.BodyBytes), packed, nil
}

// bounded fails with an *http.MaxBytesError once more than most bytes come.
func bounded(r io.Reader, most int64) io.Reader {
	return http.MaxBytesReader(nil, io.NopCloser(r), most)
}

// patient ends the call when a read takes too long. What is done between reads takes none of that time.
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

// collect reads the body to its end: into the response if it is short text, else to where the
// request says.
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

// fitsLine reports whether a body, as a JSON string, has at most so many bytes.
func fitsLine(b []byte, most int) bool {
	return len(b) <= most && utf8.Valid(b) && len(schema.AppendString(nil, string(b)))-len(`""`) <= most
}

// sink ends the call where the caller's writer fails.
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

// outgoing is a request's body. The transport may close it after it has returned; done is closed then.
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
