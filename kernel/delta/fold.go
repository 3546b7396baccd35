package delta

import (
	"strconv"

	"github.com/tidwall/btree"

	"github.com/promptware-os/pwos/schema"
)

// sums are amounts by name. They are never changed: adding makes others. nil is none.
type sums = btree.Map[string, float64]

// fold is what a beginning of a log comes to. It is a value: folds are kept and compared, never changed.
type fold struct {
	state                    *object
	resources, relationships *sums
	deltas, violations       int64
}

// add returns the fold with one more delta. Amounts are added in the order of the log, each to its own sum, so that the
// same log always gives the same sums, to the last bit.
func (f fold) add(body string) fold {
	r := &reader{rest: []byte(body)}
	f.deltas++
	f.violations += int64(r.tag())
	if changes := r.text(); len(changes) > len("{}") {
		f.state = merge(f.state, changes)
	}
	f.resources = addAmounts(f.resources, r)
	f.relationships = addAmounts(f.relationships, r)
	return f
}

// addAmounts returns the sums with the next amounts of r added. It copies them once, before the first.
func addAmounts(s *sums, r *reader) *sums {
	copied := false
	r.amounts(func(name string, amount float64) {
		switch {
		case s == nil:
			s = &sums{}
		case !copied:
			s = s.Copy()
		}
		copied = true
		s.Set(name, sum(s, name)+amount)
	})
	return s
}

// sum returns what a name has come to, 0 where it has nothing.
func sum(s *sums, name string) float64 {
	if s == nil {
		return 0
	}
	amount, _ := s.Get(name)
	return amount
}

// appendMemory appends f as the member memory of an answer.
func (f *fold) appendMemory(dst []byte) []byte {
	dst = appendObject(append(dst, `{"state":`...), f.state)
	dst = appendSums(append(dst, `,"resources":`...), f.resources)
	dst = appendSums(append(dst, `,"relationships":`...), f.relationships)
	dst = strconv.AppendInt(append(dst, `,"deltas":`...), f.deltas, 10)
	dst = strconv.AppendInt(append(dst, `,"violations":`...), f.violations, 10)
	return append(dst, '}')
}

// appendSums writes sums by ascending name. They are finite: see bounded.
func appendSums(dst []byte, s *sums) []byte {
	dst = append(dst, '{')
	if s != nil {
		s.Scan(func(name string, amount float64) bool {
			if dst[len(dst)-1] != '{' {
				dst = append(dst, ',')
			}
			dst = append(schema.AppendString(dst, name), ':')
			dst = strconv.AppendFloat(dst, amount, 'g', -1, 64)
			return true
		})
	}
	return append(dst, '}')
}
