package egress

import (
	"bytes"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Price is what a model's tokens cost, in US dollars a million.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Prices are those of models by name, or by the beginning of their names with a * behind.
type Prices map[string]Price

// of is the price of a model: by its name, else by the longest beginning of it.
func (p Prices) of(model string) (price Price, found bool) {
	if price, found = p[model]; found {
		return price, true
	}
	longest := -1
	for name, its := range p {
		if start, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(model, start) && len(start) > longest {
			price, found, longest = its, true, len(start)
		}
	}
	return price, found
}

// cost is what a use costs, in millionths of a US dollar, rounded up.
func (p Price) cost(u *schema.NetUsage, cachedWithin bool) int64 {
	input := u.Input
	if cachedWithin {
		input = max(0, input-u.CachedRead)
	}
	return roundUp(p.Input*float64(input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CachedRead) + p.CacheWrite*float64(u.CachedWrite))
}

// roundUp is a cost as a whole number, within what a client can read.
func roundUp(cost float64) int64 { return int64(min(math.Ceil(cost), 1<<53-1)) }

// maxAsked is how much of a request is read to find what it asks for, in bytes.
const maxAsked = 4 << 20

// asks is what a request asks a model for.
type asks struct {
	model string
	most  int64 // tokens of the answer; 0: it does not say
}

// asked reads what a request asks a model for. Its body is read as far as that takes, and is there again afterwards.
func asked(r *http.Request) (a asks) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.Body == nil || kind != "application/json" {
		return a
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAsked))
	rest := r.Body
	if err != nil {
		rest = broken{rest, err}
	}
	r.Body = &joined{io.MultiReader(bytes.NewReader(text), rest), rest}
	s := scanner{see: func(path, value string) {
		switch path {
		case "model":
			if name, ok := strings.CutPrefix(value, `"`); ok {
				a.model = strings.ToValidUTF8(strings.TrimSuffix(name, `"`), "?")
			}
		case "max_tokens", "max_completion_tokens", "max_output_tokens":
			if n, err := strconv.ParseInt(value, 10, 53); err == nil && n > a.most {
				a.most = n
			}
		}
	}}
	s.write(text)
	return a
}

// joined is a body of which a part was read before.
type joined struct {
	io.Reader
	io.Closer
}

// broken is a body that has failed.
type broken struct {
	io.ReadCloser
	err error
}

func (b broken) Read([]byte) (int, error) { return 0, b.err }
