package resource

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// Amounts are kept as the decimals that people write, in exact arithmetic, and are never changed in place. A JSON number
// stands for the shortest decimal that names its float64: 0.1 is a tenth, so ten of them fit a quota of 1, and ten
// releases leave nothing. Sums of floats would do neither, and a fixed number of digits would refuse numbers that the
// contract allows. Whatever the order of the same bookings, replayed or not, the sum is the same.

// exact returns the amount that a number of the wire or the configuration stands for. It must be finite.
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

// orZero returns a, or 0 where it is nil.
func orZero(a *big.Rat) *big.Rat {
	if a == nil {
		return new(big.Rat)
	}
	return a
}

// text writes an amount with all its digits, which is also how JSON writes it. A sum of decimals always has an end.
func text(amount *big.Rat) schema.Decimal {
	if amount.IsInt() {
		return schema.Decimal(amount.Num().String())
	}
	digits, _ := amount.FloatPrec()
	return schema.Decimal(amount.FloatString(digits))
}

// parse reads what text wrote of an amount above 0, and nothing else: of the numbers that a damaged snapshot may hold some
// have no end, and some take a gigabyte.
func parse(written string) (*big.Rat, bool) {
	const longest = 1000 // more digits than a sum of floats can have on both sides of its point
	if len(written) > longest || strings.Trim(written, "0123456789.") != "" {
		return nil, false
	}
	amount, ok := new(big.Rat).SetString(written)
	return amount, ok && amount.Sign() > 0 && string(text(amount)) == written
}
