package view

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// OfKernel returns an object with the member kernel added at its beginning; unchanged if the name is empty.
func OfKernel(kernel string, object schema.Value) schema.Value {
	if kernel == "" || len(object) < 2 || object[0] != '{' {
		return object
	}
	head := Object(nil).Text("kernel", kernel).Close()
	if string(object) == "{}" {
		return head
	}
	return append(append(head[:len(head)-1:len(head)-1], ','), object[1:]...)
}

// Unanswered returns the JSON line of a kernel that did not answer: its name and the error.
func Unanswered(kernel string, why *fault.Fault) schema.Value {
	return Object(nil).Text("kernel", kernel).Raw("error", Object(nil).Text("id", string(why.ID)).Text("message", why.Message).Close()).Close()
}

// Record returns the next entry of a kernel's record; nil at its end. The entry is valid until the next call.
type Record func() (*Entry, error)

// RecordOf returns a Record of entries.
func RecordOf(entries []Entry) Record {
	next := 0
	return func() (*Entry, error) {
		if next == len(entries) {
			return nil, nil
		}
		next++
		return &entries[next-1], nil
	}
}

// Merge calls do with the entries of several records, each with the index of its record, in the order of the times at
// which the calls were made. Entries of one record stay in its order: one that was made before the entry above it, such
// as a long effect, gets the time of that entry. Of entries with the same time, those of the first record are first.
// Merge keeps one entry of each record in memory.
func Merge(records []Record, do func(i int, e *Entry) error) error {
	heads, times := make([]*Entry, len(records)), make([]int64, len(records))
	advance := func(i int) (err error) {
		if heads[i], err = records[i](); err == nil && heads[i] != nil {
			times[i] = max(times[i], made(heads[i]))
		}
		return err
	}
	for i := range records {
		if err := advance(i); err != nil {
			return err
		}
	}
	for {
		first := -1
		for i := range heads {
			if heads[i] != nil && (first < 0 || times[i] < times[first]) {
				first = i
			}
		}
		if first < 0 {
			return nil
		}
		if err := do(first, heads[first]); err != nil {
			return err
		}
		if err := advance(first); err != nil {
			return err
		}
	}
}

// made returns the time at which a call was made, in Unix milliseconds. The time of an effect's entry is that of its
// end.
func made(e *Entry) int64 {
	if e.Intent == 0 || e.LatencyUS <= 0 {
		return e.Time
	}
	return e.Time - 1 - e.LatencyUS/1000 // rounded down
}
