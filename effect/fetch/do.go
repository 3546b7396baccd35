package fetch

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// call is one call of Do.
type call struct {
	*Fetcher
	req     *Request
	parent  context.Context // the caller's
	ctx     context.Context // child of parent, with the time limit
	cancel  context.CancelCauseFunc
	timeout time.Duration
}

// Do sends the request and returns the answer, with any status. An error wraps a fault (HTTPForbidden, HTTPAddress, HTTPInvalid,
// HTTPUpstream, HTTPTooLarge or HTTPTimeout), the cause of ctx if that was canceled, or the error of a function of the request.
func (f *Fetcher) Do(ctx context.Context, req Request) (*Response, error) {
	c := &call{Fetcher: f, req: &req, parent: ctx}
	t, h, failure := c.check()
	if failure != nil {
		return nil, failure
	}
	timed, stop := context.WithTimeoutCause(ctx, c.timeout, errTotal)
	defer stop()
	c.ctx, c.cancel = context.WithCancelCause(timed)
	defer c.cancel(nil)

	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	case <-c.ctx.Done():
		return nil, c.explain(t.url.Host, c.ctx.Err())
	}
	return c.follow(t, h)
}

// Check returns the fault of a request that Do refuses before it uses the network: an invalid request, or one that the policy or the
// address in the URL forbids. It opens no sealed value and no body.
func (f *Fetcher) Check(req Request) *fault.Fault {
	c := &call{Fetcher: f, req: &req}
	_, _, failure := c.check()
	return failure
}

// check returns the target and the headers of the request, or the fault that Check returns. It sets the defaults of the request.
func (c *call) check() (*target, *headers, *fault.Fault) {
	req := c.req
	switch req.Method {
	case "":
		req.Method = http.MethodGet
	case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch:
	default:
		return nil, nil, invalid("method", "must be one of GET, POST, PUT, DELETE, PATCH")
	}
	switch {
	case req.Method == http.MethodGet:
		req.Body = nil
	case req.Body == nil && (req.Method == http.MethodPost || req.Method == http.MethodPut):
		return nil, nil, invalid("body", "is required for %s; it may be empty", req.Method)
	case req.Body != nil && req.Body.Size > c.limits.RequestBytes:
		return nil, nil, invalid("body", "must not be longer than %d bytes", c.limits.RequestBytes)
	}
	switch c.timeout = req.Timeout; {
	case c.timeout == 0:
		c.timeout = c.limits.Timeout
	case c.timeout < 0 || c.timeout > c.limits.MaxTimeout:
		return nil, nil, invalid("timeout", "must be more than 0 and at most %v", c.limits.MaxTimeout)
	}
	t, why := parseTarget(req.URL, nil)
	if why != "" {
		return nil, nil, invalid("url", "%s", why)
	}
	if denied := req.Policy.permit(t); denied != nil {
		return nil, nil, denied
	}
	if t.addr.IsValid() {
		if why := c.gate.judge(t.addr, allowed(c.options.AllowHosts, t)); why != "" {
			return nil, nil, t.refuse(why)
		}
	}
	h, failure := parseHeaders(req.Headers, c.limits.HeaderBytes)
	if failure == nil {
		failure = h.permit(t, &req.Policy)
	}
	return t, h, failure
}

// follow sends the request, and follows redirects.
func (c *call) follow(t *target, h *headers) (*Response, error) {
	method, body := c.req.Method, c.req.Body
	var via []string
	for redirects := 0; ; redirects++ {
		resp, to, err := c.exchange(method, t, h, body)
		if err != nil {
			return nil, err
		}
		if to == "" {
			resp.Via = via
			return resp, nil
		}
		via = append(via, t.url.Scheme+"://"+t.url.Host)
		if redirects == c.limits.Redirects {
			return nil, upstream("%s redirected once more after %d redirects: fetch the final URL", t.url.Host, redirects)
		}
		next, err := c.redirect(t, to)
		if err != nil {
			return nil, err
		}
		if !next.sameOrigin(t) {
			h.leave()
		}
		if getInstead(resp.Status, method) {
			method, body = http.MethodGet, nil
			h.leaveBody()
		}
		t = next
	}
}

// redirect returns the target of a redirect from t. It checks the target as that of a new request.
func (c *call) redirect(t *target, location string) (*target, error) {
	next, why := parseTarget(location, t.url)
	if why != "" {
		return nil, upstream("%s redirected to a URL that %s", t.url.Host, why)
	}
	if denied := c.req.Policy.permit(next); denied != nil {
		return nil, fault.Prefix(denied, "%s redirected elsewhere", t.url.Host)
	}
	if judge := c.req.Policy.Redirected; judge != nil {
		if denied := judge(next.url.String()); denied != nil {
			return nil, fault.Prefix(denied, "%s redirected elsewhere", t.url.Host)
		}
	}
	return next, nil
}

// getInstead reports whether a redirect changes the method to GET, as in browsers.
func getInstead(status int, method string) bool {
	return status == http.StatusSeeOther || method == http.MethodPost && (status == http.StatusMovedPermanently || status == http.StatusFound)
}

// exchange sends one request and returns its response. For a redirect, to is its location, and the response has no body.
func (c *call) exchange(method string, t *target, h *headers, body *Body) (_ *Response, to string, err error) {
	header, err := h.open(c.ctx, t, &c.req.Policy)
	if err != nil {
		return nil, "", c.explain(t.url.Host, c.fail("make the headers", err))
	}
	if header.Get("User-Agent") == "" {
		header.Set("User-Agent", c.options.UserAgent)
	}
	if header.Get("Range") == "" {
		header.Set("Accept-Encoding", "gzip")
	}
	ctx, cancel := context.WithCancel(c.ctx)
	req := (&http.Request{Method: method, URL: t.url, Header: header, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	sent, err := c.load(req, body)
	if err != nil {
		cancel()
		return nil, "", err
	}
	d := c.destination(ctx, t)
	defer func() {
		cancel()
		d.close()
		<-sent
	}()
	late := time.AfterFunc(c.limits.Header, func() {
		c.cancel(fault.HTTPTimeout.New("%s did not begin to answer within %v: try again later", t.url.Host, c.limits.Header))
	})
	resp, err := c.transport(d).RoundTrip(req)
	late.Stop()
	if err != nil {
		return nil, "", c.explain(t.url.Host, err)
	}
	defer func() { _ = resp.Body.Close() }() // the connection is closed too
	return c.receive(resp, t)
}

// load sets the body of the request. sent is closed when the transport has closed the body.
func (c *call) load(req *http.Request, body *Body) (sent chan struct{}, err error) {
	sent = make(chan struct{})
	if body == nil || body.Size == 0 {
		if body != nil {
			req.Body = http.NoBody
		}
		close(sent)
		return sent, nil
	}
	r, err := body.Open()
	if err != nil {
		return nil, c.explain(req.URL.Host, c.fail("open the request's body", err))
	}
	req.Body, req.ContentLength = &outgoing{ReadCloser: r, call: c, done: sent}, body.Size
	return sent, nil
}

// receive reads an answer. For a redirect, it returns the location instead of reading the body.
func (c *call) receive(resp *http.Response, t *target) (*Response, string, error) {
	host := t.url.Host
	if resp.StatusCode < 200 || resp.StatusCode > 599 {
		return nil, "", upstream("%s answered with the status %d, which ends no request", host, resp.StatusCode)
	}
	out := &Response{Status: resp.StatusCode, URL: t.url.String()}
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		if to := resp.Header.Get("Location"); to != "" {
			return out, to, nil
		}
	}
	body, unpacked, err := c.unpack(resp, host)
	if err != nil {
		return nil, "", c.explain(host, err)
	}
	out.Headers = flatten(resp.Header, unpacked)
	if err := c.collect(body, host, out); err != nil {
		return nil, "", err
	}
	if err := c.ctx.Err(); err != nil { // the server may have ended the body because the call was canceled
		return nil, "", c.explain(host, err)
	}
	return out, "", nil
}

// transport returns a transport for one exchange, so that callers share no connections, and each connection is checked.
func (c *call) transport(d *destination) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Transport{
		DialContext:            d.dial,
		TLSClientConfig:        &tls.Config{RootCAs: c.options.RootCAs, MinVersion: tls.VersionTLS12},
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{MaxReceiveBufferPerConnection: 1 << 20, MaxReceiveBufferPerStream: 256 << 10},
		DisableKeepAlives:      true,
		DisableCompression:     true, // the transport would decompress without a limit
		MaxResponseHeaderBytes: c.limits.HeaderBytes,
	}
}
