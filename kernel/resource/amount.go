package resource

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Amounts are decimals in exact arithmetic, and never changed in place. A JSON number means the
// shortest decimal that gives its float64: 0.1 is a tenth, so ten of them fit a quota of 1, and ten
// releases leave 0. Sums of floats would give neither, and a fixed number of digits would refuse
// numbers that the contract allows. The sum does not depend on the order of bookings.

// exact returns the amount that a number of the wire or the configuration means. It must be finite.
func exact(units float64) *big.Rat {
	if n := int64(units); float64(n) == units && -1<<53 < n && n < 1<<53 {
		return new(big.Rat).SetInt64(n)
	}
	amount, ok := new(big.Rat).SetString(strconv.FormatFloat(units, 'e', -1, 64))
	if !ok {
		panic("resource: amount is not finite")
	}
	return amount
}

// plus adds two amounts; nil is 0.
func plus(a, b *big.Rat) *big.Rat {
	if a == nil {
		return new(big.Rat).Set(b)
	}
	return new(big.Rat).Add(a, b)
}

// orZero returns a, or 0 if it is nil.
func orZero(a *big.Rat) *big.Rat {
	if a == nil {
		return new(big.Rat)
	}
	return a
}

// text formats an amount with all its digits, as JSON does. A sum of decimals has finitely many.
func text(amount *big.Rat) schema.Decimal {
	if amount.IsInt() {
		return schema.Decimal(amount.Num().String())
	}
	digits, _ := amount.FloatPrec()
	return schema.Decimal(amount.FloatString(digits))
}

// parse reads what text writes of an amount above 0, and nothing else: other numbers in a damaged snapshot may have
// no end, or take a gigabyte.
func parse(written string) (*big.Rat, bool) {
	const longest = 1000 // more digits than a sum of floats can have
	if len(written) > longest || strings.Trim(written, "0123456789.") != "" {
		return nil, false
	}
	amount, ok := new(big.Rat).SetString(written)
	return amount, ok && amount.Sign() > 0 && string(text(amount)) == written
}
