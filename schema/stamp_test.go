package schema_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/promptware-os/pwos/schema"
)

var schemaTime = time.UnixMilli(1735000000123)

// TestStampIsUUIDv7 checks that ids are UUIDv7 (RFC 9562, section 5.7) of the given time (MESSAGE 4.1.2 #2, EVENT 4.1.2 #2, PROTOCOL 3).
func TestStampIsUUIDv7(t *testing.T) {
	t.Parallel()
	stamps := schema.NewStamper()
	for _, at := range []time.Time{time.UnixMilli(0), schemaTime, time.UnixMilli(1<<48 - 1)} {
		for range 1000 {
			st := stamps.Next(at)
			id, err := uuid.ParseBytes(st.ID[:])
			if err != nil || id.String() != string(st.ID[:]) {
				t.Fatalf("%s: %v", st.ID, err)
			}
			if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
				t.Fatalf("%s: version %d, variant %v", id, id.Version(), id.Variant())
			}
			var ms int64
			for _, b := range id[:6] {
				ms = ms<<8 | int64(b)
			}
			if ms != at.UnixMilli() || st.Time != ms || st.Proof != (schema.Proof{}) {
				t.Fatalf("%s: time %d, stamp %+v, want %d", id, ms, st, at.UnixMilli())
			}
		}
	}
}

// TestStampsSortByTime checks that ids of a later millisecond sort after earlier ones.
func TestStampsSortByTime(t *testing.T) {
	t.Parallel()
	stamps := []*schema.Stamper{schema.NewStamper(), schema.NewStamper()}
	var last string
	for i := range 5000 {
		st := stamps[i%2].Next(schemaTime.Add(time.Duration(i*i) * time.Millisecond))
		if id := string(st.ID[:]); id <= last {
			t.Fatalf("%s came after %s", id, last)
		} else {
			last = strings.Clone(id)
		}
	}
}

// TestStampsAreUnique checks that a million ids of one millisecond, from several stampers, are different, and that all 74 random bits
// are used.
func TestStampsAreUnique(t *testing.T) {
	t.Parallel()
	const count = 1_000_000
	stamps := []*schema.Stamper{schema.NewStamper(), schema.NewStamper(), schema.NewStamper()}
	seen := make(map[[36]byte]struct{}, count)
	var zero, one uuid.UUID // bits that were 0, and 1, in some id
	for i := range count {
		st := stamps[i%len(stamps)].Next(schemaTime)
		seen[st.ID] = struct{}{}
		if i < 1000 {
			id := uuid.MustParse(string(st.ID[:]))
			for j, b := range id {
				zero[j] |= ^b
				one[j] |= b
			}
		}
	}
	if len(seen) != count {
		t.Errorf("%d of %d ids are different", len(seen), count)
	}
	random := 0
	for j := range zero {
		for bit := range 8 {
			random += int(zero[j] & one[j] >> bit & 1)
		}
	}
	if random != 74 {
		t.Errorf("%d bits vary, want 74", random)
	}
}

func TestNewID(t *testing.T) {
	t.Parallel()
	stamps := schema.NewStamper()
	first, second := stamps.NewID(), stamps.NewID()
	id, err := uuid.Parse(first)
	if err != nil || id.Version() != 7 || first == second {
		t.Errorf("%s, %s: %v", first, second, err)
	}
	if age := time.Since(time.Unix(id.Time().UnixTime())); age < -time.Second || age > time.Minute {
		t.Errorf("%s is %v old", first, age)
	}
}
