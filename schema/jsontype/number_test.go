package jsontype_test

import (
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

type (
	integerBox struct {
		N int64 `json:"n"`
	}
	numberBox struct {
		N float64 `json:"n"`
	}
	boundedBox struct {
		N float64 `json:"n" min:"0" max:"0.1"`
	}
)

var (
	integerType = jsontype.Of[integerBox]()
	numberType  = jsontype.Of[numberBox]()
	boundedType = jsontype.Of[boundedBox]()
)

func boxed(number string) []byte { return []byte(`{"n":` + number + `}`) }

// TestIntegers checks that an integer is one as defined by JSON Schema (in draft 6 and later, 1.0 is an integer), in the range that every
// JSON reader represents exactly.
func TestIntegers(t *testing.T) {
	t.Parallel()
	zeros := strings.Repeat("0", 500)
	for number, want := range map[string]int64{
		"0": 0, "-0": 0, "-0.0": 0, "0e5": 0, "0.000": 0, "0e999999999999": 0, "0E-999999999999": 0, "-0." + zeros + "e1000000000": 0,
		"7": 7, "-7": -7, "1.0": 1, "-1.000": -1, "1e3": 1000, "1E+3": 1000, "1.5e1": 15, "15000e-3": 15, "0.015e3": 15, "100e-2": 1, "-2.50e2": -250,
		"1." + zeros: 1, "1" + zeros + "e-500": 1, "0." + zeros + "1e501": 1, "1e007": 10_000_000,
		"9007199254740991": 9007199254740991, "-9007199254740991": -9007199254740991, "9007199254740991.0": 9007199254740991, "9.007199254740991e15": 9007199254740991,
	} {
		in, err := integerType.Decode(boxed(number))
		if err != nil {
			t.Errorf("%.40s: %v", number, err)
		} else if got := in.(*integerBox).N; got != want {
			t.Errorf("%.40s: %d, want %d", number, got, want)
		}
	}
	for _, value := range []string{
		"0.5", "1.5", "-1e-1", "1e-400", "1.0000000000000000000000000000000001", "15e-1", "9007199254740992", "-9007199254740992", "9007199254740991.5",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "12345678901234567890", "1e16", "1e400", "-1e400", "1e-1000000000", "1e1000000000",
		"1" + zeros, "1e99999999999999999999", "1e-99999999999999999999", `"1"`, `""`, "null", "true", "false", "[]", "[1]", "{}",
	} {
		if in, err := integerType.Decode(boxed(value)); err == nil || err.Kind != fault.InvalidInput || err.Field != "n" {
			t.Errorf("%.40s: %v, error %v", value, in, err)
		}
	}
}

// TestIntegersAgainstRationals compares numbers with small exponents with exact arithmetic.
func TestIntegersAgainstRationals(t *testing.T) {
	t.Parallel()
	numbers := rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?`)
	zeros := rapid.StringMatching(`-?[1-9]0{0,18}(\.0{1,9})?([eE][+-]?1?[0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		for range 20 {
			number := rapid.OneOf(numbers, zeros).Draw(t, "number")
			exact, ok := new(big.Rat).SetString(number)
			if !ok {
				t.Fatalf("no rational: %s", number)
			}
			limit := big.NewInt(1<<53 - 1)
			want := exact.IsInt() && new(big.Int).Abs(exact.Num()).Cmp(limit) <= 0
			in, err := integerType.Decode(boxed(number))
			switch {
			case want != (err == nil):
				t.Fatalf("%s: error %v, want an integer: %t", number, err, want)
			case want && in.(*integerBox).N != exact.Num().Int64():
				t.Fatalf("%s: %d", number, in.(*integerBox).N)
			}
		}
	})
}

// TestNumbers checks that a bound is compared with all digits of a number, as in the schema: a rounded number could be within the bound.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		typ    *jsontype.Type
		number string
		accept bool
	}{
		{numberType, "0", true},
		{numberType, "-0", true},
		{numberType, "1e308", true},
		{numberType, "1.7976931348623157e308", true},
		{numberType, "-1.7976931348623157E+308", true},
		{numberType, "1.79769313486231570000000001e308", false},
		{numberType, "-1.79769313486231570000000001e308", false},
		{numberType, "1.8e308", false},
		{numberType, "1e400", false},
		{numberType, "-1e1000000000", false},
		{numberType, "1e-400", true},
		{numberType, "5e-324", true},
		{numberType, "1e-1000000000", true},
		{numberType, "12345678901234567890", true},
		{boundedType, "0", true},
		{boundedType, "-0", true},
		{boundedType, "-0.0e10", true},
		{boundedType, "0.1", true},
		{boundedType, "10e-2", true},
		{boundedType, "0.100", true},
		{boundedType, "0.1000000000000000000000000000001", false},
		{boundedType, "0.0999999999999999999999999999999", true},
		{boundedType, "0.2", false},
		{boundedType, "1e-400", true},
		{boundedType, "-1e-400", false},
		{boundedType, "-1e-1000000000", false},
		{boundedType, "-1", false},
		{boundedType, `"0"`, false},
		{boundedType, "null", false},
		{boundedType, "[0]", false},
	} {
		_, err := tc.typ.Decode(boxed(tc.number))
		if tc.accept != (err == nil) {
			t.Errorf("%s: error %v", tc.number, err)
		}
		if err != nil && (err.Field != "n" || !strings.HasPrefix(err.Message, "Invalid input: n must be a finite number")) {
			t.Errorf("%s: %+v", tc.number, err)
		}
	}
	in, err := numberType.Decode(boxed("-12.5e-1"))
	if err != nil || in.(*numberBox).N != -1.25 {
		t.Errorf("-12.5e-1: %v, %v", in, err)
	}
}

// TestHostileExponentsCostNothing checks that the cost of a number does not depend on its exponent: parsing 4,096 numbers with large
// exponents takes less time than expanding one of them to its digits.
func TestHostileExponentsCostNothing(t *testing.T) {
	t.Parallel()
	start := time.Now()
	for i := range 4096 {
		exponent := strconv.Itoa(1_000_000_000 + i)
		for _, number := range []string{"1e" + exponent, "-1e-" + exponent, "0e" + exponent, "0.1E+" + exponent + exponent} {
			for _, typ := range []*jsontype.Type{integerType, numberType, boundedType} {
				typ.Decode(boxed(number))
			}
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}
