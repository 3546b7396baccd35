package kernel

import (
	"math"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Budgets tells what processes were given to use up.
type Budgets interface {
	// Same reports whether a process was given just that.
	Same(pid int64, budget *schema.BudgetGrant) bool
}

// MicroUSD is an amount of US dollars in millionths.
func MicroUSD(usd float64) int64 { return int64(math.Round(usd * 1e6)) }

// checkBudget returns what is wrong with a budget that is asked for.
func checkBudget(b *schema.BudgetGrant) *fault.Fault {
	if b == nil || b.USD == nil {
		return nil
	}
	if millionths := *b.USD * 1e6; math.Abs(millionths-math.Round(millionths)) > millionths*1e-15 { // what a float64 cannot say
		return Invalid("budget.usd", "must have no more than six decimals")
	}
	return nil
}
