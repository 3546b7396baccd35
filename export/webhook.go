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
	shownAnswer    = 200 // bytes of a refusal that the error has
)

// Webhook posts each record to a receiver, one request an event, in order. A receiver that cannot be reached, or that
// answers 408, 429 or 5xx, is asked again, ever less often. Any other answer but 2xx is an error.
type Webhook struct {
	to       string
	header   http.Header
	format   Format
	patience time.Duration
	notice   func(text string)
	client   *http.Client
}

// NewWebhook returns a Sink that posts CloudEvents. header is added to each request, such as one that authenticates.
// patience bounds how long a record is tried; 0: as long as the export runs. notice tells people why the export waits.
func NewWebhook(to string, header http.Header, patience time.Duration, notice func(text string)) (*Webhook, error) {
	if err := CheckReceiver(to); err != nil {
		return nil, err
	}
	return &Webhook{
		to: to, header: header, format: CloudEvents, patience: patience, notice: notice,
		client: &http.Client{
			Timeout: requestTimeout,
			// A redirect would take the header to another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// CheckReceiver returns an error unless the URL of a receiver is https, or http on this machine's loopback: records are not sent
// over a network that others can read.
func CheckReceiver(to string) error {
	at, err := url.Parse(to)
	switch {
	case err != nil || at.Host == "" || at.User != nil || at.Fragment != "":
		return fmt.Errorf("%q is no URL of a receiver, such as https://events.example/in", to)
	case at.Scheme == "https", at.Scheme == "http" && isLoopback(at.Hostname()):
		return nil
	}
	return fmt.Errorf("%q would send the record without encryption: use https, or http to this machine's loopback", to)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Deliver implements Sink.
func (w *Webhook) Deliver(ctx context.Context, batch []*Record) error {
	for _, r := range batch {
		body, err := w.format.Line(r)
		if err != nil {
			return err
		}
		if err := retry(ctx, w.patience, w.notice, func() (time.Duration, error) { return w.post(ctx, body) }); err != nil {
			return fmt.Errorf("deliver %s: %w", r.ID(), err)
		}
	}
	return nil
}

// post sends one event. again is how long to wait before it may be tried again; 0: trying again is of no use.
func (w *Webhook) post(ctx context.Context, body []byte) (again time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.to, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header = w.header.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	req.Header.Set("Content-Type", cloudEventType+"; charset=UTF-8")
	answer, err := w.client.Do(req)
	if err != nil {
		return minWait, fault.ExportUndelivered.New("the receiver cannot be reached: %v", err)
	}
	defer func() { _ = answer.Body.Close() }()                 // it was read as far as anybody needs it
	text, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10)) // what cannot be read is not shown
	if answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return 0, nil
	}
	refusal := fault.ExportRefused.New("the receiver answered %s: %.*q", answer.Status, shownAnswer, text)
	switch code := answer.StatusCode; {
	case code == http.StatusRequestTimeout, code == http.StatusTooManyRequests, code >= 500:
		seconds, _ := strconv.Atoi(answer.Header.Get("Retry-After")) // a date is not waited for
		return max(minWait, min(time.Duration(seconds)*time.Second, maxWait)), refusal
	}
	return 0, refusal
}

// Close implements Sink.
func (w *Webhook) Close() error {
	w.client.CloseIdleConnections()
	return nil
}
