package oauth

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// redirect is the server to which the browser is redirected.
type redirect struct {
	address string
	server  *http.Server
	done    chan struct{}

	mu     sync.Mutex
	state  string // of the login in progress, or ""
	answer chan answered
}

// answered is the answer of the authorization server, as the browser delivers it.
type answered struct {
	auth.AuthorizationResult
	refused error
}

// listen serves the redirect on a free port of 127.0.0.1.
func listen() (*redirect, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the browser: %w", err)
	}
	b := &redirect{address: "http://" + l.Addr().String() + "/callback", done: make(chan struct{}), answer: make(chan answered, 1)}
	b.server = &http.Server{Handler: http.HandlerFunc(b.serve), ReadTimeout: exchangeTime, WriteTimeout: exchangeTime, MaxHeaderBytes: maxHeader}
	go func() {
		defer close(b.done)
		_ = b.server.Serve(l) // until close
	}()
	return b, nil
}

// expect returns a channel that receives the answer with that state, once.
func (b *redirect) expect(state string) <-chan answered {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.state = state
	return b.answer
}

// serve answers a browser. A request without the state has no effect.
func (b *redirect) serve(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	b.mu.Lock()
	known := b.state != "" && r.Method == http.MethodGet && r.URL.Path == "/callback" && len(q["state"]) == 1 && q.Get("state") == b.state
	if known {
		b.state = ""
	}
	b.mu.Unlock()
	w.Header().Set("Referrer-Policy", "no-referrer")
	if !known {
		http.Error(w, "This is not the login that pwos waits for.", http.StatusBadRequest)
		return
	}
	a := answered{AuthorizationResult: auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}}
	if a.Code == "" {
		a.refused = fmt.Errorf("the authorization server refuses: %.100q, %.300q", q.Get("error"), q.Get("error_description"))
	}
	b.answer <- a
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("pwos has the answer: look at its terminal. This window can be closed.\n")) // fails if the browser has hung up
}

// close ends the server after the browser got its answer.
func (b *redirect) close() {
	ctx, cancel := context.WithTimeout(context.Background(), exchangeTime)
	defer cancel()
	if b.server.Shutdown(ctx) != nil {
		_ = b.server.Close() // other connections are not the browser's
	}
	<-b.done
}
