package budget

import (
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
)

// kind is a kind of budget.
type kind int

const (
	calls kind = iota
	fetches
	tokens
	dollars // in millionths
	kinds
)

// names are the names of the kinds in a budget.
var names = [kinds]string{"calls", "fetches", "tokens", "usd"}

// amounts is an amount of each kind.
type amounts [kinds]int64

// perDollar converts dollars to their unit.
const perDollar = 1_000_000

// text formats an amount for users.
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

// limits are the amounts of a budget, and which kinds it limits.
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

// account is the account of one process of a tree with a budget. It is immutable.
type account struct {
	PID      int64
	Parent   int64 // the parent account; 0: the operator's, which is unlimited
	Limited  [kinds]bool
	Given    amounts
	Asked    amounts // what it should have in total; Given is more if more was in use
	Spent    amounts
	Reserved amounts // by requests in flight
	Below    amounts // given to living children
	Deadline int64   // milliseconds; 0 if it has none itself
	Ended    bool    // its process has ended: what is still spent is the parent's
}

// used is what is spent, reserved and given to children.
func (a *account) used(k kind) int64 { return a.Spent[k] + a.Reserved[k] + a.Below[k] }

// withheld is what it has beyond Asked. It was freed after a smaller grant, and returns to the parent at the
// process's end; until then calls in flight may hold some of it.
func (a *account) withheld(k kind) int64 { return max(0, a.Given[k]-max(a.Asked[k], a.used(k))) }

// left is what it may still use, not counting what calls in flight hold.
func (a *account) left(k kind) int64 { return a.Given[k] - a.used(k) - a.withheld(k) }
