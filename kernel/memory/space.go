package memory

import (
	"strings"

	"github.com/tidwall/btree"
)

// space holds the values of one origin, in the order of its keys. The zero space is empty; a nil one can be read.
type space struct {
	tree  btree.Map[string, string]
	bytes int64 // of all keys and values
}

func (s *space) len() int {
	if s == nil {
		return 0
	}
	return s.tree.Len()
}

// get returns the value of a key, and whether there is one.
func (s *space) get(key string) (string, bool) {
	if s == nil {
		return "", false
	}
	return s.tree.Get(key)
}

// set stores copies of key and value, replacing an old value.
func (s *space) set(key string, value []byte) {
	key, text := entry(key, value)
	old, replaced := s.tree.Set(key, text)
	if replaced {
		s.bytes -= int64(len(key) + len(old))
	}
	s.bytes += int64(len(key) + len(text))
}

// load is set for a key greater than all others, without a search.
func (s *space) load(key string, value []byte) {
	key, text := entry(key, value)
	s.tree.Load(key, text)
	s.bytes += int64(len(key) + len(text))
}

// remove deletes a key, if it is there.
func (s *space) remove(key string) {
	if old, ok := s.tree.Delete(key); ok {
		s.bytes -= int64(len(key) + len(old))
	}
}

// ascend calls yield with the keys from pivot on, ascending, until yield returns false.
func (s *space) ascend(pivot string, yield func(key, value string) bool) {
	if s != nil {
		s.tree.Ascend(pivot, yield)
	}
}

// last returns the greatest key, "" if there is none.
func (s *space) last() string {
	key, _, _ := s.tree.Max()
	return key
}

// entry copies key and value into one allocation: small entries cost mostly overhead.
func entry(key string, value []byte) (string, string) {
	var b strings.Builder
	b.Grow(len(key) + len(value))
	b.WriteString(key)
	b.Write(value)
	both := b.String()
	return both[:len(key)], both[len(key):]
}
