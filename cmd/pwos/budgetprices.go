package main

import (
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/effect/price"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/schema"
)

// listedPrice is a line of `pwos budget --prices`, in US dollars per million tokens.
type listedPrice struct {
	Model      string  `json:"model"`
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
	Source     string  `json:"source"`
	Date       string  `json:"date,omitzero"`
}

// printPrices lists the prices of models: those of the configuration, and those that pwos knows.
func (a *app) printPrices() error {
	cfg, _, err := config.Settings(nil, os.Getenv, io.Discard, version.Build())
	if err != nil {
		return err
	}
	var list []listedPrice
	own := price.Configured(cfg.Prices)
	for _, model := range slices.Sorted(maps.Keys(own)) {
		list = append(list, listed(model, own[model], cfg.File, ""))
	}
	for _, m := range price.Shipped() {
		list = append(list, listed(m.Model, m.Price(), price.Source, price.Date))
	}
	l := a.Listing("model", "prompts", "answers", "from a cache", "into it", "source")
	for i := range list {
		one := &list[i]
		text, err := schema.Marshal(one)
		if err != nil {
			return err
		}
		from := one.Source
		if one.Date != "" {
			from += ", " + one.Date
		}
		if err := l.Add(text, one.Model, dollars(one.Input), dollars(one.Output), dollars(one.CacheRead), dollars(one.CacheWrite), from); err != nil {
			return err
		}
	}
	return l.End()
}

func listed(model string, p price.Price, source, date string) listedPrice {
	return listedPrice{model, p.Input, p.Output, p.CacheRead, p.CacheWrite, source, date}
}

func dollars(usd float64) string { return "$" + strconv.FormatFloat(usd, 'f', -1, 64) }
