package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// budgetUsage is the help of --budget.
const budgetUsage = "what it may use up, as kind=amount: calls, fetches, tokens, usd, wall_seconds; separated by commas, may be given again"

// budgetOf reads what --budget was given: kind=amount, each kind once.
func budgetOf(given []string) (*schema.BudgetGrant, error) {
	if len(given) == 0 {
		return nil, nil
	}
	budget := new(schema.BudgetGrant)
	places := map[string]**int64{
		"calls": &budget.Calls, "fetches": &budget.Fetches, "tokens": &budget.Tokens, "wall_seconds": &budget.WallSeconds,
	}
	for _, text := range given {
		kind, amount, found := strings.Cut(text, "=")
		place, known := places[kind]
		switch {
		case !found:
			return nil, fmt.Errorf("--budget %q is not of the form kind=amount", text)
		case !known && kind != "usd":
			return nil, fmt.Errorf("--budget %s: there is none of that kind; calls, fetches, tokens, usd and wall_seconds there are", kind)
		case known && *place != nil || kind == "usd" && budget.USD != nil:
			return nil, fmt.Errorf("--budget names %s twice", kind)
		case kind == "usd":
			usd, err := strconv.ParseFloat(amount, 64)
			if err != nil || !(usd >= 0 && usd <= 1e6) {
				return nil, fmt.Errorf("--budget usd: %q is no amount such as 2 or 0.5, of a million at most", amount)
			}
			budget.USD = &usd
			continue
		}
		n, err := strconv.ParseInt(amount, 10, 54)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("--budget %s: %q is no whole number such as 0 or 500", kind, amount)
		}
		*place = &n
	}
	return budget, nil
}
