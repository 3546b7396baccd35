package export

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/schema/fault"
)

// Bounds of one request to a receiver.
const (
	requestTimeout = 30 * time.Second
	mostAnswer     = 64 << 10
	shownAnswer    = 200 // bytes of a refusal in the error
)

// Receiver is the HTTP server that an export posts to.
type Receiver struct {
	URL    string
	Header http.Header // of each request, such as Authorization
	// Patience bounds the retries of a request; 0: as long as the export runs.
	Patience time.Duration
	// Notice is called with the reason, for people, why the export waits.
	Notice func(text string)
}

// poster posts to a Receiver. A request that failed, or was answered with 408, 429 or 5xx, is retried with backoff.
// Any other answer but 2xx is an error.
type poster struct {
	Receiver
	contentType string
	client      *http.Client
}

func newPoster(to Receiver, contentType string) (*poster, error) {
	if err := CheckReceiver(to.URL); err != nil {
		return nil, err
	}
	return &poster{to, contentType, &http.Client{
		Timeout: requestTimeout,
		// A redirect would take the header to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// CheckReceiver returns an error unless the URL of a receiver is https, or http on this machine's loopback: records are
// not sent unencrypted over a network.
func CheckReceiver(to string) error {
	at, err := url.Parse(to)
	switch {
	case err != nil || at.Host == "" || at.User != nil || at.Fragment != "":
		return fmt.Errorf("%q is not the URL of a receiver, such as https://events.example/in", to)
	case at.Scheme == "https", at.Scheme == "http" && isLoopback(at.Hostname()):
		return nil
	}
	return fmt.Errorf("%q would send the record without encryption: use https, or http to this machine's loopback", to)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// post sends body until the receiver accepts it, and returns the receiver's answer.
func (p *poster) post(ctx context.Context, body []byte) (answer []byte, err error) {
	err = retry(ctx, p.Patience, p.Notice, func() (again time.Duration, err error) {
		answer, again, err = p.try(ctx, body)
		return again, err
	})
	return answer, err
}

// try sends one request. again is the minimum time before a retry; 0: the error is final.
func (p *poster) try(ctx context.Context, body []byte) (text []byte, again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.URL, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	for name, values := range p.Header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", p.contentType)
	answer, err := p.client.Do(req)
	if err != nil {
		return nil, minWait, fault.ExportUndelivered.New("the receiver cannot be reached: %v", err)
	}
	defer func() { _ = answer.Body.Close() }() // read as far as needed
	text, err = io.ReadAll(io.LimitReader(answer.Body, mostAnswer))
	if answer.StatusCode >= 200 && answer.StatusCode < 300 && err == nil {
		return text, 0, nil
	}
	refusal := fault.ExportRefused.New("the receiver answered %s: %.*q", answer.Status, shownAnswer, text)
	switch code := answer.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500, err != nil:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // the form with a date is ignored
		return nil, max(minWait, min(time.Duration(seconds)*time.Second, maxWait)), refusal
	}
	return nil, 0, refusal
}

// Close implements Sink.
func (p *poster) Close() error {
	p.client.CloseIdleConnections()
	return nil
}

// Webhook posts each record to a receiver of CloudEvents, one request an event, in order.
type Webhook struct{ *poster }

// NewWebhook returns a Sink that posts CloudEvents.
func NewWebhook(to Receiver) (*Webhook, error) {
	p, err := newPoster(to, cloudEventType+"; charset=UTF-8")
	return &Webhook{p}, err
}

// Deliver implements Sink.
func (w *Webhook) Deliver(ctx context.Context, batch []*Record) error {
	for _, r := range batch {
		body, err := CloudEvents.Line(r)
		if err == nil {
			_, err = w.post(ctx, body)
		}
		if err != nil {
			return fmt.Errorf("deliver %s: %w", r.ID(), err)
		}
	}
	return nil
}
