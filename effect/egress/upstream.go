package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/promptware-os/pwos/effect/fetch"
	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// UpstreamConfig has the settings of an Upstream.
type UpstreamConfig struct {
	Name string
	URL  *url.URL // https, or http on loopback; its path is a prefix of the path of every request
	// Header is the name of the header with the credential, and optionally the part of its value before the credential:
	// "x-api-key", or "Authorization: Bearer".
	Header string
	Secret func(context.Context) (string, error) // returns the credential, or ""; its error is a *fault.Fault
	// Beside returns the headers that a request needs besides the credential; nil: none.
	Beside func(secret string) map[string]string
	// Answered checks the status and header of an answer to a request with the credential. If it returns an error, a
	// *fault.Fault, the agent gets that error instead of the answer. nil: the agent gets every answer.
	Answered func(secret string, status int, header http.Header) error
	Close    func() // closes the resources of the upstream, or nil
	// Dial connects to the host of URL with the address rules of Http.Fetch; nil: the address is not checked.
	Dial      func(context.Context, fetch.Endpoint) (net.Conn, error)
	Rules     []schema.NetRule
	Headers   schema.NetHeaders // headers of requests that are forwarded; nil: schema.KnownHeaders
	Login     bool              // the credential is a login: agent hosts use it, which repeat what got a 429 for minutes, and end with 402
	Intercept bool              // also answer connections of agents to the host of URL
	RootCAs   *x509.CertPool
}

// Upstream is a server to which the kernel forwards requests of agents with a credential.
type Upstream struct {
	UpstreamConfig
	header, prefix string
	host, endpoint string
	transport      *http.Transport
}

// NewUpstream returns an upstream.
func NewUpstream(c UpstreamConfig) (*Upstream, error) {
	u := &Upstream{UpstreamConfig: c}
	if u.Headers == nil {
		u.Headers = schema.KnownHeaders()
	}
	name, prefix, _ := strings.Cut(c.Header, ":")
	u.header = http.CanonicalHeaderKey(strings.TrimSpace(name))
	if u.prefix = strings.TrimSpace(prefix); u.prefix != "" {
		u.prefix += " "
	}
	port := uint16(443)
	if c.URL.Scheme == "http" {
		port = 80
	}
	to, err := fetch.ParseEndpoint(c.URL.Host, port)
	if err != nil {
		return nil, err
	}
	u.host, u.endpoint = to.Host(), to.String()
	dial := (&net.Dialer{Timeout: 15 * time.Second}).DialContext
	if c.Dial != nil {
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx, to) }
	}
	u.transport = &http.Transport{
		DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: c.RootCAs, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
		DisableCompression: true, MaxResponseHeaderBytes: 64 << 10, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 15 * time.Second,
	}
	return u, nil
}

// close closes the idle connections and the resources of the upstream.
func (u *Upstream) close() {
	u.transport.CloseIdleConnections()
	if u.Close != nil {
		u.Close()
	}
}

// credentialHeaders returns the headers that can have credentials. They are removed from requests of agents to upstreams.
func credentialHeaders() []string {
	return []string{"authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie", "x-authorization", "x-auth-token", "x-access-token"}
}

// outgoing returns the headers of a request to the upstream: those of the agent's that the list allows, and the credential. No name
// that a server may take for that of a credential remains.
func (u *Upstream) outgoing(in http.Header, secret string) http.Header {
	out := make(http.Header, len(in)+2)
	for name, values := range in {
		key := schema.HeaderKey(name)
		if u.Headers.Allows(name) && key != schema.HeaderKey(u.header) && !slices.Contains(credentialHeaders(), key) {
			out[name] = values
		}
	}
	if strings.EqualFold(in.Get("Upgrade"), "websocket") { // httputil.ReverseProxy has set both
		out["Connection"], out["Upgrade"] = []string{"Upgrade"}, []string{"websocket"}
	}
	if secret != "" {
		out[u.header] = []string{u.prefix + secret}
		if u.Beside != nil {
			for name, value := range u.Beside(secret) {
				maps.DeleteFunc(out, func(other string, _ []string) bool { return schema.HeaderKey(other) == schema.HeaderKey(name) })
				out.Set(name, value)
			}
		}
	}
	out["Accept-Encoding"] = []string{"identity"} // the meter reads the answer
	return out
}

// refused returns why the rules of the upstream refuse a request, or "".
func (u *Upstream) refused(r *http.Request) string {
	path := r.URL.EscapedPath()
	if problem := schema.PathFault(path); problem != "" {
		return "its path " + problem
	}
	if problem := schema.QueryFault(r.URL.RawQuery); problem != "" {
		return "its query " + problem + ", from which a server may take another method"
	}
	base := strings.TrimSuffix(u.URL.EscapedPath(), "/")
	switch {
	case len(path) > maxPath:
		return "its path is too long"
	case path != base && !strings.HasPrefix(path, base+"/"):
		return "its path is not below " + base + "/"
	case !slices.ContainsFunc(u.Rules, func(rule schema.NetRule) bool { return rule.Allows(r.Method, path) }):
		return "upstream." + u.Name + ".allow in the kernel's configuration does not list it"
	}
	return ""
}

const maxPath = 2048

// serveUpstream answers a request to an upstream.
func (a *agent) serveUpstream(u *Upstream, w http.ResponseWriter, r *http.Request) {
	in := &schema.NetRequestInput{Upstream: u.Name, Method: clip(r.Method, 32), Path: clip(r.URL.EscapedPath(), maxPath), Refused: u.refused(r)}
	if in.Path == "" { // such as of OPTIONS *
		in.Path = "*"
	}
	var asked *asks
	if a.Metered(a.pid) {
		asks, done := a.asked(r)
		defer done()
		asked = &asks
		price, _ := a.Prices.Of(asks.model)
		in.MaxTokens, in.MaxMicroUSD = asks.most, roundUp(price.Output*float64(asks.most))
		if in.Refused == "" {
			in.Refused = unmetered(r, asked)
		}
	}
	in.NetMaker = makerOf(r.Context())
	answered, complete := false, true
	var x *use
	_, err := a.Journal(r.Context(), a.pid, schema.NetRequest.With(in), func(ctx context.Context) ([]byte, error) {
		g, ctx, done := a.guard(ctx, func() bool { return a.current().admitsUpstream(u.Name) })
		defer done()
		secret, given := a.own.Logins[u.Name]
		if !given {
			var err error
			if secret, err = u.Secret(ctx); err != nil {
				return nil, err
			}
		}
		answered = true
		x = &use{upstream: u, prices: a.Prices, asked: asked, guarded: g, secret: secret, out: schema.NetRequestOutput{Upstream: u.Name, Method: in.Method, Path: in.Path}}
		var failed error
		complete, failed = x.exchange(w, within(r, ctx))
		if failed != nil && !x.mayCost() {
			return nil, failed
		}
		return x.output(ctx, complete && failed == nil)
	})
	if x != nil && len(x.held) > 0 {
		complete = err == nil && x.release(w) == nil && complete
	}
	if shown := fault.Of(err); err != nil && !answered && u.Login && shown.ID == fault.BudgetExhausted {
		failAs(w, http.StatusPaymentRequired, shown)
		return
	}
	conclude(w, err, answered, complete)
}

// unmetered returns why a request of a process with a budget is refused because its usage cannot be measured, or "".
func unmetered(r *http.Request, asked *asks) string {
	const what = "it has a budget of tokens or dollars, and "
	switch encoding := strings.Join(r.Header.Values("Content-Encoding"), ","); {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return what + "what its body asks for cannot be read: send it without Content-Encoding"
	case r.Header.Get("Upgrade") != "":
		return what + "what a model uses is not known over a WebSocket: use HTTP"
	case asked.background:
		return what + "what a model uses is not known if its answer comes later: leave out background"
	}
	// Gemini names what is done with a model after a colon.
	if path := r.URL.Path; modelIn(path) != "" && !slices.Contains([]string{"generateContent", "streamGenerateContent", "countTokens"}, path[strings.LastIndex(path, ":")+1:]) {
		return what + "what a model uses is known of generateContent and streamGenerateContent alone"
	}
	return ""
}

// clip returns the first most bytes of a text.
func clip(text string, most int) string { return text[:min(len(text), most)] }

// use is one request to an upstream.
type use struct {
	*guarded
	upstream *Upstream
	prices   price.Table
	asked    *asks // nil: the process has no budget
	secret   string
	out      schema.NetRequestOutput
	sent     atomic.Int64
	received atomic.Int64
	meter    *meter

	// The end of an answer is held back until its cost is recorded. Otherwise the next request of an agent that has read the answer
	// might be admitted although this one has used up the budget.
	ending bool
	held   []byte
}

// mostHeld bounds what is held back of an answer, in bytes. No more than that follows the last event of a model's answer.
const mostHeld = 64 << 10

// release writes what was held back.
func (x *use) release(w io.Writer) error {
	_, err := w.Write(x.held)
	x.held = nil
	return err
}

func (x *use) output(ctx context.Context, complete bool) ([]byte, error) {
	x.out.Sent, x.out.Received = x.sent.Load(), x.received.Load()
	switch cause := context.Cause(ctx); {
	case cause != nil:
		x.out.Ended = said(cause)
	case complete:
		x.out.Ended = schema.NetComplete
	default:
		x.out.Ended = "the answer broke off"
	}
	if x.meter != nil {
		asked := x.asked
		if x.out.Status >= http.StatusBadRequest {
			asked = nil // a failed request has no estimated cost
		}
		x.out.Usage = x.meter.usage(x.prices, asked, x.out.Ended == schema.NetComplete)
	}
	return schema.Marshal(&x.out)
}

// mayCost reports whether a request without an answer may have a cost, because a part of it was sent.
func (x *use) mayCost() bool {
	return x.asked != nil && x.asked.most > 0 && x.sent.Load() > 0 && x.out.Status == 0
}

// exchange forwards a request with the credential, and writes the answer to w. It follows no redirect.
func (x *use) exchange(w http.ResponseWriter, r *http.Request) (complete bool, failed error) {
	u := x.upstream
	complete = pass(&scrubbing{w, x}, r, &httputil.ReverseProxy{
		Transport: u.transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = u.URL.Scheme, u.URL.Host, u.URL.Host
			p.Out.URL.RawQuery = p.In.URL.RawQuery
			p.Out.Header = u.outgoing(p.Out.Header, x.secret)
			p.Out.Trailer = nil // trailers are headers that come late
			if p.Out.Body != nil {
				p.Out.Body = &passed{ReadCloser: p.Out.Body, use: x, count: &x.sent}
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			x.out.Status = int64(resp.StatusCode)
			if u.Answered != nil {
				if err := u.Answered(x.secret, resp.StatusCode, resp.Header); err != nil {
					return err
				}
			}
			resp.Status = "" // drop the reason phrase of the upstream
			scrub(resp.Header, x.secret)
			resp.Header.Del(ErrorHeader)
			x.meter = newMeter(resp.Header.Get("Content-Type"))
			resp.Trailer = nil // trailers are not scrubbed
			resp.Body = &passed{ReadCloser: resp.Body, use: x, count: &x.received, meter: x.meter, length: resp.ContentLength, atEnd: func() { resp.Trailer = nil }}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			failed = fault.UpstreamFailed.New("the upstream %s did not answer: try again later", u.Name)
			if shown, ok := errors.AsType[*fault.Fault](err); ok {
				failed = shown
			}
			if errors.Is(err, errRevoked) || errors.Is(context.Cause(r.Context()), errRevoked) {
				failed = fault.UpstreamForbidden.New("it is no longer allowed to use the upstream %s", u.Name)
			}
			fail(w, failed)
		},
	})
	return complete, failed
}

// passed is a body that is counted and metered as it is read. It fails when the grant no longer allows the upstream.
type passed struct {
	io.ReadCloser
	use    *use
	count  *atomic.Int64
	meter  *meter
	length int64 // of a whole answer; below 0: not known
	atEnd  func()
}

func (p *passed) Read(b []byte) (int, error) {
	n, err := p.ReadCloser.Read(b)
	if !p.use.check() {
		return 0, errRevoked
	}
	p.count.Add(int64(n))
	if p.meter != nil {
		p.meter.write(b[:n])
		p.use.ending = p.use.asked != nil && (p.meter.ended || err != nil || p.count.Load() == p.length)
	}
	if err != nil && p.atEnd != nil {
		p.atEnd()
	}
	return n, err
}

// Write sends bytes after a protocol upgrade, when the body is the connection.
func (p *passed) Write(b []byte) (int, error) {
	w, ok := p.ReadCloser.(io.Writer)
	switch {
	case !ok:
		return 0, errors.ErrUnsupported
	case !p.use.check():
		return 0, errRevoked
	}
	n, err := w.Write(b)
	p.use.sent.Add(int64(n))
	return n, err
}

// scrubbing is a response writer that removes every header that repeats the credential, also from
// 1xx answers, and that holds back the end of an answer.
type scrubbing struct {
	http.ResponseWriter
	use *use
}

// Unwrap supports http.ResponseController.
func (s *scrubbing) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (s *scrubbing) WriteHeader(status int) {
	scrub(s.Header(), s.use.secret)
	s.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (s *scrubbing) Write(p []byte) (int, error) {
	if s.use.ending && len(s.use.held)+len(p) <= mostHeld {
		s.use.held = append(s.use.held, p...)
		return len(p), nil
	}
	if len(s.use.held) > 0 {
		if err := s.use.release(s.ResponseWriter); err != nil {
			return 0, err
		}
	}
	return s.ResponseWriter.Write(p)
}

// scrub removes every header that repeats a secret.
func scrub(header http.Header, secret string) {
	if secret == "" {
		return
	}
	for name, values := range header {
		if repeats(name, secret) || slices.ContainsFunc(values, func(v string) bool { return repeats(v, secret) }) {
			delete(header, name)
		}
	}
}

// repeats reports whether a text contains the secret, literally or with URL escapes, whatever its case.
func repeats(text, secret string) bool {
	lower := strings.ToLower(text)
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
		if strings.Contains(lower, strings.ToLower(form)) {
			return true
		}
	}
	return false
}
