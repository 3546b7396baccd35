package egress

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/schema"
)

// cost returns the cost of usage in millionths of a US dollar, rounded up. If cachedWithin is true, the input tokens include the
// tokens read from a cache.
func cost(p price.Price, u *schema.NetUsage, cachedWithin bool) int64 {
	input := u.Input
	if cachedWithin {
		input = max(0, input-u.CachedRead)
	}
	return roundUp(p.Input*float64(input) + p.Output*float64(u.Output) + p.CacheRead*float64(u.CachedRead) + p.CacheWrite*float64(u.CachedWrite))
}

// roundUp rounds a cost up to an integer of at most 2^53-1, which every JSON client can represent.
func roundUp(cost float64) int64 { return int64(min(math.Ceil(cost), 1<<53-1)) }

// maxAsked is the length of the beginning of a request that is parsed, in bytes. maxAsking is the number of requests of an agent whose
// beginnings are in memory at a time.
const (
	maxAsked  = 4 << 20
	maxAsking = 4
)

// asks has the model and the token limit of a request.
type asks struct {
	model string
	most  int64 // limit of output tokens of all answers; 0: none

	background bool // the answer does not come with this request
}

// asked parses the model and token limit of a request. It ignores the content type, because servers may ignore it too. It reads up to
// maxAsked bytes of the body, and sets a body that returns them again. The caller must call done after the request.
func (a *agent) asked(r *http.Request) (asks asks, done func()) {
	if r.Body == nil || r.Body == http.NoBody {
		return asks, func() {}
	}
	select {
	case a.asking <- struct{}{}:
	case <-r.Context().Done():
		return asks, func() {}
	}
	done = sync.OnceFunc(func() { <-a.asking })
	text, err := io.ReadAll(io.LimitReader(r.Body, maxAsked))
	rest := r.Body
	r.Body = body{io.MultiReader(bytes.NewReader(text), readerFunc(func(p []byte) (int, error) {
		done() // the parsed bytes are sent: free their memory
		if err != nil {
			return 0, err
		}
		return rest.Read(p)
	})), rest}
	most, answers := 0.0, 1.0
	s := scanner{see: func(path, value string) {
		n, err := strconv.ParseFloat(strings.Trim(value, `"`), 64) // some servers accept a number in a string
		if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(n) {
			n = 0
		}
		switch path {
		case "background":
			asks.background = value != "false" && value != "null"
		case "model":
			if name, ok := strings.CutPrefix(value, `"`); ok {
				asks.model = strings.ToValidUTF8(strings.TrimSuffix(name, `"`), "?")
			}
		case "max_tokens", "max_completion_tokens", "max_output_tokens", "generationConfig.maxOutputTokens", "generation_config.max_output_tokens":
			most = max(most, math.Ceil(n))
		case "n", "best_of", "generationConfig.candidateCount", "generation_config.candidate_count":
			answers = max(answers, min(math.Ceil(n), 1<<53))
		}
	}}
	s.write(text)
	asks.model = cmp.Or(asks.model, modelIn(r.URL.Path))
	asks.most = roundUp(most * answers)
	return asks, done
}

// modelIn returns the model that a path such as /v1beta/models/gemini-x:generateContent names; "" if it names none.
func modelIn(path string) string {
	at := strings.LastIndex(path, "/models/")
	if at < 0 {
		return ""
	}
	name, _, called := strings.Cut(path[at+len("/models/"):], ":")
	if !called || strings.Contains(name, "/") {
		return ""
	}
	return strings.ToValidUTF8(clip(name, maxToken), "?")
}

// body is a request body whose reader includes bytes that were already read.
type body struct {
	io.Reader
	io.Closer
}

// readerFunc is an io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
