package budget

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// kind is something that can be used up.
type kind int

const (
	calls kind = iota
	fetches
	tokens
	dollars // in millionths
	kinds
)

// names are those of the kinds, as a budget has them.
var names = [kinds]string{"calls", "fetches", "tokens", "usd"}

// amounts is how much of each kind.
type amounts [kinds]int64

// perDollar is what amounts of dollars are counted in.
const perDollar = 1_000_000

// text is an amount as users write it.
func (k kind) text(n int64) string {
	if k != dollars {
		return strconv.FormatInt(n, 10)
	}
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	decimals := strings.TrimRight(strconv.FormatInt(perDollar+n%perDollar, 10)[1:], "0")
	return strings.TrimSuffix(sign+strconv.FormatInt(n/perDollar, 10)+"."+decimals, ".")
}

// limits are the amounts of a budget, and of which kinds it has any.
func limits(b *schema.BudgetGrant) (given amounts, limited [kinds]bool) {
	if b == nil {
		return given, limited
	}
	for k, n := range [...]*int64{calls: b.Calls, fetches: b.Fetches, tokens: b.Tokens} {
		if n != nil {
			given[k], limited[k] = *n, true
		}
	}
	if b.USD != nil {
		given[dollars], limited[dollars] = kernel.MicroUSD(*b.USD), true
	}
	return given, limited
}

// account is what one process of a tree with a budget has. It does not change: another one takes its place.
type account struct {
	PID      int64
	Parent   int64 // whose account comes next; 0: the operator's, which has no end
	Limited  [kinds]bool
	Given    amounts
	Asked    amounts // what it is to have in all; Given is more where more was in use
	Spent    amounts
	Reserved amounts // by requests that are under way
	Below    amounts // given on to children that live
	Deadline int64   // milliseconds; 0: none of its own
	Ended    bool    // its process is gone: what still comes is its parent's
}

// used is what is spent, reserved and given on.
func (a *account) used(k kind) int64 { return a.Spent[k] + a.Reserved[k] + a.Below[k] }

// withheld is what it has over what it is to have: it came back after it was granted less, and goes where it came from at its end. It
// stays here until then, since calls under way may hold some of it.
func (a *account) withheld(k kind) int64 { return max(0, a.Given[k]-max(a.Asked[k], a.used(k))) }

// left is what it may still use, but for what calls under way hold.
func (a *account) left(k kind) int64 { return a.Given[k] - a.used(k) - a.withheld(k) }
