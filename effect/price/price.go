// Package price says what the tokens of models cost (PROTOCOL 10).
package price

import (
	"slices"
	"strings"
)

// Price is the price of a model's tokens, in US dollars per million.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// dearer returns the dearer of two prices, of each kind.
func (p Price) dearer(q Price) Price {
	return Price{max(p.Input, q.Input), max(p.Output, q.Output), max(p.CacheRead, q.CacheRead), max(p.CacheWrite, q.CacheWrite)}
}

// Table has prices by the name of a model, or by a prefix of names followed by *.
type Table map[string]Price

// Configured returns the table of a configuration: US dollars per million tokens, of prompts and of answers, and of prompts from a cache and
// into it, where these cost other than others.
func Configured(given map[string][]float64) Table {
	t := make(Table, len(given))
	for model, usd := range given {
		its := Price{Input: usd[0], Output: usd[1], CacheRead: usd[0], CacheWrite: usd[0]}
		if len(usd) == 4 {
			its.CacheRead, its.CacheWrite = usd[2], usd[3]
		}
		t[model] = its
	}
	return t
}

// match returns the price of a model: that of its name, else of the longest matching prefix.
func (t Table) match(model string) (p Price, found bool) {
	if p, found = t[model]; found {
		return p, true
	}
	longest := -1
	for name, its := range t {
		if start, ok := strings.CutSuffix(name, "*"); ok && strings.HasPrefix(model, start) && len(start) > longest {
			p, found, longest = its, true, len(start)
		}
	}
	return p, found
}

// Of returns the price of a model: from the table, which is that of the configuration, else that of Shipped. Otherwise known is false, and
// the price is the dearest of each kind that is known of the model's vendor, or of all models where its vendor is not known.
func (t Table) Of(model string) (p Price, known bool) {
	if p, known = t.match(model); known {
		return p, true
	}
	for _, s := range models {
		if s.Model == model || strings.HasPrefix(model, s.Model+"-") && isDate(model[len(s.Model)+1:]) {
			return s.Price(), true
		}
	}
	vendor := vendorOf(model)
	for _, s := range models {
		if vendor == "" || s.Vendor == vendor {
			p = p.dearer(s.Price())
		}
	}
	for name, its := range t {
		if vendor == "" || vendorOf(name) == vendor {
			p = p.dearer(its)
		}
	}
	return p, false
}

// isDate reports whether the end of a model's name is the date of its version, as in claude-haiku-4-5-20251001 and gpt-5-2025-08-07.
func isDate(text string) bool {
	digits := strings.ReplaceAll(text, "-", "")
	return len(digits) == 8 && !strings.ContainsFunc(digits, func(r rune) bool { return r < '0' || r > '9' })
}

// Model is a model whose price is shipped.
type Model struct {
	Model, Vendor string
	Input, Output float64 // US dollars per million tokens
}

// Price returns its price. What a cache changes is not known: cached prompts cost as others.
func (m Model) Price() Price { return Price{m.Input, m.Output, m.Input, m.Input} }

// Where Shipped is from, and of when.
const (
	Source = "the catalogue of pi-ai 1.6.0, which is not the vendors' own"
	Date   = "2026-11-28"
)

// models is sorted by vendor and model.
var models = [...]Model{
	{"claude-haiku-4-5", "anthropic", 1, 5},
	{"claude-opus-5-5", "anthropic", 4, 20},
	{"claude-sonnet-5-5", "anthropic", 2, 10},
	{"gemini-3.1-pro-preview", "google", 2, 12},
	{"gemini-3.5-flash-lite", "google", 0.3, 2.5},
	{"gemini-3.8-flash", "google", 0.75, 3.75},
	{"gpt-6-sol", "openai", 2, 10},
	{"gpt-6.1-sol", "openai", 2, 10},
}

// Shipped returns the models whose prices pwos knows by itself.
func Shipped() []Model { return slices.Clone(models[:]) }

// vendors are the beginnings of the names of a vendor's models.
var vendors = [...]struct{ begin, vendor string }{
	{"claude", "anthropic"}, {"gemini", "google"}, {"gpt", "openai"}, {"chatgpt", "openai"}, {"codex", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"},
}

// vendorOf returns the vendor of a model, also of one that another service has below a directory: anthropic/claude-x. "": it is not known.
func vendorOf(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, v := range vendors {
		if strings.HasPrefix(name, v.begin) {
			return v.vendor
		}
	}
	return ""
}
