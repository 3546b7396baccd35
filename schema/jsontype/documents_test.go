package jsontype_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/promptware-os/pwos/schema/jsontype"
)

// maker generates documents for a JSON Schema of AppendJSONSchema. A careful maker generates valid documents, which random ones of a
// type with many members would rarely be. Any other maker makes mistakes.
type maker struct {
	t       *rapid.T
	careful bool
}

// oneIn returns true with a probability of 1/n, and false for a careful maker.
func (m maker) oneIn(n int) bool { return !m.careful && rapid.IntRange(1, n).Draw(m.t, "one in") == n }

// values generates JSON values of every kind in many forms.
func values() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{
		"null", "true", "false", "0", "-0", "1e400", "-1E+2", "0.1e-9", "7.0", "12345678901234567890", `""`, `"a"`, `"\ud83d\ude00"`, `"\u0000\/"`,
		`"` + "\u2028\x7f" + `"`, "[ ]", "{\t}", `[[1 ,"x"],null]`, `{"" : {"a":[]}` + "\r}", `{"name":"a"}`, `["a","bb"]`,
	})
}

func (m maker) value(s map[string]any) string {
	if m.oneIn(30) {
		return values().Draw(m.t, "another value")
	}
	if names, ok := s["type"].([]any); ok { // a string or null
		if rapid.Bool().Draw(m.t, "null") {
			return "null"
		}
		s = maps.Clone(s)
		s["type"] = names[0]
	}
	switch s["type"] {
	case "string":
		return m.text(s)
	case "integer", "number":
		return m.number(s)
	case "boolean":
		return rapid.SampledFrom([]string{"true", "false"}).Draw(m.t, "boolean")
	case "array":
		items := make([]string, rapid.IntRange(0, 3).Draw(m.t, "items"))
		for i := range items {
			items[i] = m.value(s["items"].(map[string]any))
		}
		return "[" + strings.Join(items, ",") + "]"
	case "object":
		if _, ok := s["properties"]; ok {
			return m.object(s)
		}
		return m.dictionary(s["additionalProperties"].(map[string]any))
	}
	return values().Draw(m.t, "any value")
}

func (m maker) object(s map[string]any) string {
	properties, required := s["properties"].(map[string]any), s["required"].([]any)
	var members []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(required, any(name)) && rapid.Bool().Draw(m.t, "left out") || m.oneIn(40) {
			continue
		}
		members = append(members, m.name(name)+":"+m.value(properties[name].(map[string]any)))
	}
	if m.oneIn(15) {
		names := []string{"", "x", "Name", "PID", "name ", "nam", "\x00"}
		name := rapid.SampledFrom(names).Draw(m.t, "unknown")
		members = append(members, m.name(name)+":"+values().Draw(m.t, "of unknown"))
	}
	return "{" + strings.Join(rapid.Permutation(members).Draw(m.t, "order"), ",") + "}"
}

func (m maker) dictionary(elem map[string]any) string {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"", "a", "A", "b.c", "é", "\n", "name", "type"}), 0, 3, rapid.ID).Draw(m.t, "names")
	for i, name := range names {
		names[i] = m.name(name) + ":" + m.value(elem)
	}
	return "{" + strings.Join(names, ",") + "}"
}

// name returns the name of a member as JSON, sometimes with an escape.
func (m maker) name(s string) string {
	if s != "" && s[0] < 0x80 && m.oneIn(10) {
		return fmt.Sprintf(`"\u%04x%s`, s[0], jsontype.AppendString(nil, s[1:])[1:])
	}
	return string(jsontype.AppendString(nil, s))
}

// text returns a string whose length, in characters, is near the bounds of its schema, with and without escapes.
func (m maker) text(s map[string]any) string {
	if words, ok := s["enum"].([]any); ok {
		near := []string{"", "LOW", "low ", "hig", "a bb", "very"}
		count := 2 * len(near)
		if m.careful {
			near = nil
		}
		for range count {
			near = append(near, rapid.SampledFrom(words).Draw(m.t, "word").(string))
		}
		return m.name(rapid.SampledFrom(near).Draw(m.t, "near word"))
	}
	var lengths []int
	for _, bound := range []string{"minLength", "maxLength"} {
		if n, ok := s[bound].(float64); ok {
			lengths = append(lengths, max(0, int(n)-1), int(n), int(n), int(n)+1)
		}
	}
	lengths = slices.DeleteFunc(append(lengths, 2, 3), func(n int) bool {
		least, isLeast := s["minLength"].(float64)
		most, isMost := s["maxLength"].(float64)
		return m.careful && (isLeast && n < int(least) || isMost && n > int(most))
	})
	length := rapid.SampledFrom(lengths).Draw(m.t, "length")
	characters := []string{"a", "é", "€", "\U0001f600", `\ud83d\ude00`, `\n`, `\u0000`, `\"`, "e\u0301"[1:], "\u2028"}
	drawn := make([]string, min(length, 8)) // repeated up to the length
	for i := range drawn {
		drawn[i] = rapid.SampledFrom(characters).Draw(m.t, "character")
	}
	var written strings.Builder
	for i := range length {
		written.WriteString(drawn[i%len(drawn)])
	}
	return `"` + written.String() + `"`
}

// number returns a number on a bound, next to a bound, or any other, in one of many forms.
func (m maker) number(s map[string]any) string {
	if m.careful {
		least, most := s["minimum"].(float64), s["maximum"].(float64)
		return strconv.FormatFloat(max(least, min(most, float64(rapid.IntRange(0, 9).Draw(m.t, "digit")))), 'f', -1, 64)
	}
	var centres []string
	for _, bound := range []string{"minimum", "maximum"} {
		centres = append(centres, strconv.FormatFloat(s[bound].(float64), 'e', -1, 64))
	}
	centre, _ := new(big.Rat).SetString(rapid.SampledFrom(append(centres, "0", "1", "-1", "7", "5e-1", "1e15")).Draw(m.t, "centre"))
	steps := []string{"0", "0", "0", "0", "1", "-1", "1/2", "-1/2", "1/1000000000000000000000", "-1/1000000000000000000000"}
	step, _ := new(big.Rat).SetString(rapid.SampledFrom(steps).Draw(m.t, "step"))
	exact := centre.Add(centre, step)
	digits := strings.TrimRight(exact.FloatString(40), "0")
	digits = strings.TrimSuffix(digits, ".")
	if digits == "-" || digits == "" {
		digits = "0"
	}
	switch rapid.IntRange(0, 7).Draw(m.t, "way") {
	case 0:
		if !strings.Contains(digits, ".") {
			digits += ".0"
		}
		return digits + rapid.SampledFrom([]string{"", "000", "e0", "E+00", "e-0"}).Draw(m.t, "suffix")
	case 1:
		shift := rapid.SampledFrom([]int{1, 2, 17, 300}).Draw(m.t, "shift")
		power := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(shift)), nil))
		return exact.Mul(exact, power).FloatString(40) + "e-" + strconv.Itoa(shift)
	case 2:
		return rapid.SampledFrom([]string{"-0", "0e300", "-0.0E-300", "1e-400", "-1e-400", "1e400", "-1e400", "1e300", "123456789012345678901234567890"}).Draw(m.t, "odd")
	}
	return digits
}
