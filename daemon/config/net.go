package config

import (
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Net bounds the connections of agents' networks.
type Net struct {
	Each int      `toml:"connections_each"` // of one agent
	All  int      `toml:"connections"`      // of all agents
	Idle Duration `toml:"idle"`             // a connection without traffic is closed after this time
}

// Upstream is a server that agents use with a credential of the kernel (PROTOCOL 9).
type Upstream struct {
	URL       string   `toml:"url"`       // https:, or http: on loopback; its path is the prefix of every request's path
	Header    string   `toml:"header"`    // of the credential, with the prefix of its value: "Authorization: Bearer"
	From      string   `toml:"from"`      // key of the sealed credential, below vault/, or login: and the name of a login
	Allow     []string `toml:"allow"`     // allowed requests, such as "POST /v1/…"
	Headers   []string `toml:"headers"`   // names of request headers that are forwarded; nil: schema.KnownHeaders
	Env       string   `toml:"env"`       // the agent's variable with the base URL; "": only PWOS_UPSTREAM_<NAME>
	Intercept bool     `toml:"intercept"` // intercept TLS to its host inside the agent's network
}

// upstreams is the prefix of all keys of upstreams; the next word is the name of one.
const upstreams = "upstream."

// Target returns the address of the upstream, which Check has accepted.
func (u *Upstream) Target() (*url.URL, error) { return url.Parse(u.URL) }

// vendors returns the upstreams of the vendors whose credentials the kernel takes as logins, by the name of both. They take the requests
// whose use of a model is counted, and no others: not those that make another credential, or have an answer that comes later.
func vendors() map[string]Upstream {
	messages := []string{"POST /v1/messages", "POST /v1/messages/count_tokens", "GET /v1/models", "GET /v1/models/…"}
	return map[string]Upstream{
		"anthropic": {URL: "https://api.anthropic.com", Header: "X-Api-Key", From: "login:anthropic", Allow: messages},
		// A token of a subscription, which Claude Code alone may use.
		"claude": {URL: "https://api.anthropic.com", Header: "Authorization: Bearer", From: "login:claude", Allow: messages},
		// A login of Codex with ChatGPT, which Codex alone may use, and renews.
		"codex": {
			URL: "https://chatgpt.com/backend-api/codex", Header: "Authorization: Bearer", From: "login:codex",
			Allow: []string{"POST /backend-api/codex/responses", "POST /backend-api/codex/responses/compact", "GET /backend-api/codex/models"},
		},
		"gemini": {
			URL: "https://generativelanguage.googleapis.com", Header: "X-Goog-Api-Key", From: "login:gemini",
			Allow: []string{"GET /v1beta/models", "GET /v1beta/models/…", "POST /v1beta/models/…", "GET /v1/models", "GET /v1/models/…", "POST /v1/models/…"},
		},
		"openai": {
			URL: "https://api.openai.com/v1", Header: "Authorization: Bearer", From: "login:openai",
			Allow: []string{"POST /v1/responses", "POST /v1/responses/compact", "POST /v1/chat/completions", "POST /v1/embeddings", "GET /v1/models", "GET /v1/models/…"},
		},
	}
}

// Upstreams returns the upstreams: those of the vendors, unless the configuration has another of the name, and the others of the
// configuration. One of a login that the kernel does not hold is not offered.
func (c *Config) Upstreams() map[string]Upstream {
	all := vendors()
	maps.Copy(all, c.Upstream)
	return all
}

// upstreamFaults reports invalid upstreams.
func (c *Config) upstreamFaults(refuse func(key, format string, args ...any)) {
	hosts, variables := map[string]string{}, map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Upstream)) {
		u := c.Upstream[name]
		key := upstreams + name
		if !schema.UpstreamName(name) {
			refuse(key, "the name %q must have only lower-case letters, digits and hyphens", name)
		}
		u.faults(key, refuse)
		if u.Intercept {
			if target, err := u.Target(); err == nil {
				if other := hosts[target.Host]; other != "" {
					refuse(key+".intercept", "%s is intercepted for the upstream %s already", target.Host, other)
				}
				hosts[target.Host] = name
			}
		}
		if other := variables[u.Env]; u.Env != "" && other != "" {
			refuse(key+".env", "%s is the variable of the upstream %s already", u.Env, other)
		}
		variables[u.Env] = name
	}
}

// priceFaults reports invalid prices. A price is two or four numbers: for prompts and answers, and for prompts from a cache
// and into it.
func (c *Config) priceFaults(refuse func(key, format string, args ...any)) {
	for _, model := range slices.Sorted(maps.Keys(c.Prices)) {
		usd := c.Prices[model]
		bad := len(usd) != 2 && len(usd) != 4 || slices.ContainsFunc(usd, func(n float64) bool { return !(n >= 0 && n <= 1e6) })
		if bad || model == "" || strings.Contains(strings.TrimSuffix(model, "*"), "*") {
			refuse(priced+model, "must be the name of a model, or a prefix followed by *, with two or four numbers: US dollars per million tokens "+
				"of prompts and of answers, and of prompts from a cache and into it")
		}
	}
}

func (u *Upstream) faults(key string, refuse func(key, format string, args ...any)) {
	if u.URL == "" || u.Header == "" || u.From == "" || u.Allow == nil {
		refuse(key, "must have url, header, from and allow")
		return
	}
	target, err := u.Target()
	switch {
	case err != nil || target.Host == "" || target.Scheme != "https" && target.Scheme != "http":
		refuse(key+".url", "%q must be an address such as https://api.example.com/v1", u.URL)
	case target.User != nil || target.RawQuery != "" || target.Fragment != "":
		refuse(key+".url", "%q must have no user, no query and no fragment", u.URL)
	case target.Scheme == "http" && !schema.OnLoopback(target.Hostname()):
		refuse(key+".url", "%q must be https: over http: the credential would be sent in the clear", u.URL)
	case target.Path != "" && schema.PathFault(strings.TrimSuffix(target.EscapedPath(), "/")+"/") != "":
		refuse(key+".url", "%q has a path that %s", u.URL, schema.PathFault(target.EscapedPath()))
	case u.Intercept && (target.Scheme != "https" || isAddr(target.Hostname()) || target.Port() != "" && target.Port() != "443"):
		refuse(key+".intercept", "only an https: address with a name, on port 443, can be intercepted, not %q", u.URL)
	}
	name, prefix, _ := strings.Cut(u.Header, ":")
	if !headerName(name) || strings.ContainsFunc(prefix, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
		refuse(key+".header", "%q must be the name of a header, such as x-api-key, or a header with the text before the credential, such as \"Authorization: Bearer\"", u.Header)
	}
	_, isLogin := vendors()[strings.TrimPrefix(u.From, "login:")]
	isLogin = isLogin && strings.HasPrefix(u.From, "login:")
	if rest, ok := strings.CutPrefix(strings.TrimPrefix(u.From, "/"), "vault/"); (!ok || rest == "") && !isLogin {
		refuse(key+".from", "%q must be the key of a sealed value, such as vault/openai, or one of %s", u.From,
			"login:"+strings.Join(slices.Sorted(maps.Keys(vendors())), ", login:"))
	}
	if len(u.Allow) == 0 {
		refuse(key+".allow", "lists no requests, so all would be refused: name some, such as \"POST /v1/…\"")
	}
	for _, rule := range u.Allow {
		if _, err := schema.ParseNetRule(rule); err != nil {
			refuse(key+".allow", "%v", err)
		}
	}
	if _, err := schema.ParseNetHeaders(u.Headers); err != nil {
		refuse(key+".headers", "%v", err)
	}
	if u.Env != "" && !variableName(u.Env) {
		refuse(key+".env", "%q must be the name of a variable, such as OPENAI_BASE_URL, and not one of the kernel's", u.Env)
	}
}

// reserved are the variables by which the kernel directs programs to itself.
func reserved() []string {
	return []string{
		"PATH", "HOME", "TMPDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "NODE_USE_ENV_PROXY",
		"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO",
	}
}

func variableName(name string) bool {
	return strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == "" && (name[0] < '0' || name[0] > '9') &&
		!strings.HasPrefix(name, "PWOS_") && !slices.Contains(reserved(), name)
}

// headerName reports whether a credential may be sent in a header with that name. Headers that determine where a request
// goes or ends are refused.
func headerName(name string) bool {
	return name != "" && strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" &&
		!schema.OverridesRequest(name) && !schema.FramesRequest(name)
}

func isAddr(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
