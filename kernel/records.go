package kernel

import (
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/promptware-os/pwos/schema"
)

// Records is the snapshot codec of a state that is a list of records: each chunk is a JSON array of some of them.
type Records[T any] struct{ list func() *schema.Type }

// RecordsOf returns the codec of T, a data type like those of syscalls. It describes T when it first reads one: most processes that have the
// codec in a variable of a package read none.
func RecordsOf[T any]() Records[T] { return Records[T]{sync.OnceValue(schema.TypeOf[[]T])} }

// recordsSize is the number of bytes from which on a chunk takes no further record.
const recordsSize = 64 << 10

// Writer returns what Domain.Snapshot returns: it writes the records, in their order. The same records give the same chunks.
func (c Records[T]) Writer(records iter.Seq[T]) func(write func(chunk []byte) error) error {
	return func(write func(chunk []byte) error) error { return c.write(write, records) }
}

func (Records[T]) write(write func(chunk []byte) error, records iter.Seq[T]) error {
	var chunk []byte
	for r := range records {
		text, err := schema.Marshal(&r)
		if err != nil {
			return fmt.Errorf("write snapshot: %w", err)
		}
		if chunk = append(append(chunk, ','), text...); len(chunk) < recordsSize {
			continue
		}
		if err := writeArray(write, chunk); err != nil {
			return err
		}
		chunk = nil // the writer may keep it
	}
	if len(chunk) == 0 {
		return nil
	}
	return writeArray(write, chunk)
}

// writeArray writes records that have a comma before each.
func writeArray(write func(chunk []byte) error, records []byte) error {
	records[0] = '['
	if err := write(append(records, ']')); err != nil {
		return fmt.Errorf("write snapshot: %w", err)
	}
	return nil
}

// Read calls each with the records of a chunk, in their order, until it returns an error. Raw values alias the chunk.
func (c Records[T]) Read(chunk []byte, each func(*T) error) error {
	if !schema.Valid(chunk) {
		return errors.New("read snapshot: a chunk is no JSON")
	}
	list, err := c.list().Decode(chunk)
	if err != nil {
		return fmt.Errorf("read snapshot: %w", err)
	}
	records := *list.(*[]T)
	for i := range records {
		if err := each(&records[i]); err != nil {
			return fmt.Errorf("read snapshot: %w", err)
		}
	}
	return nil
}

// Stateless is the part of a domain that keeps nothing.
type Stateless struct{}

// Snapshot writes nothing.
func (Stateless) Snapshot() func(write func(chunk []byte) error) error {
	return func(func([]byte) error) error { return nil }
}

// Reset has nothing to forget.
func (Stateless) Reset() {}

// Restore refuses every chunk, since Snapshot writes none.
func (Stateless) Restore([]byte) error { return errors.New("read snapshot: the domain has no state") }
