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

// unpack returns the body of an answer, bounded as it is sent and as it unpacks. packed says that a packing was undone.
func (c *call) unpack(resp *http.Response, host string) (body io.Reader, packed bool, err error) {
	if resp.ContentLength > c.limits.WireBytes {
		return nil, false, tooLarge(host, "a body", c.limits.WireBytes)
	}
	body = &patient{r: resp.Body, call: c, host: host}
	body = &capped{r: body, left: c.limits.WireBytes, over: tooLarge(host, "a body", c.limits.WireBytes)}
	switch encoding := strings.ToLower(strings.Join(resp.Header.Values("Content-Encoding"), ",")); encoding {
	case "", "identity":
	case "gzip", "x-gzip":
		unzipped, err := gzip.NewReader(body)
		switch {
		case errors.Is(err, io.EOF):
			return http.NoBody, true, nil // nothing at all, which some servers call packed
		case err != nil:
			return nil, true, badPacking(host, err)
		}
		packed, body = true, &unpacking{r: unzipped, host: host}
	default:
		return nil, false, upstream("%s packed its answer in a way that nobody asked for", host)
	}
	return &capped{r: body, left: c.limits.BodyBytes, over: tooLarge(host, "a body", c.limits.BodyBytes)}, packed, nil
}

// badPacking tells a stream that is no gzip from one that could not be read.
func badPacking(host string, err error) error {
	if errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) || strings.HasPrefix(err.Error(), "flate: ") {
		return upstream("%s packed its answer in a way that does not unpack", host)
	}
	return err
}

type unpacking struct {
	r    io.Reader
	host string
}

func (u *unpacking) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		err = badPacking(u.host, err)
	}
	return n, err
}

// capped fails with over once more than left bytes come.
type capped struct {
	r    io.Reader
	left int64
	over error
}

func (l *capped) Read(p []byte) (int, error) {
	if l.left < 0 {
		return 0, l.over
	}
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return n - 1, l.over
	}
	return n, err
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

// collect reads the body to its end: into the response where it is short text, else to where the request says.
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

// fitsLine reports whether a body can stand in a line of JSON as a string of at most so many bytes.
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
