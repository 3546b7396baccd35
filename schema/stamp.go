package schema

import (
	crand "crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// Stamp has the id, the time and the audit record of an answer.
type Stamp struct {
	ID    [36]byte // a UUIDv7 in text form
	Time  int64    // Unix epoch, milliseconds
	Proof Proof
	Refs  []byte // `metadata.refs` of a reply with references, see Type.Refer; nil if it has none
}

// Proof identifies the audit record of an answer: `metadata.kernel` (PROTOCOL 3). Seq 0 means none.
type Proof struct {
	Seq       uint64
	PID       int64
	Tick      int64
	LatencyUS int64
	DiskOnly  bool // in a cluster that answers after a majority: the entry is only on the kernel's own disk
}

// Stamper makes stamps. It is not safe for concurrent use: each connection has its own.
type Stamper struct{ random *rand.ChaCha8 }

// NewStamper returns a Stamper seeded from the operating system. Its ids are unique, but not secret.
func NewStamper() *Stamper {
	var seed [32]byte
	_, _ = crand.Read(seed[:]) // it never returns an error
	return &Stamper{random: rand.NewChaCha8(seed)}
}

// Next returns a stamp for an answer at the time now, with a new id: a UUIDv7 (RFC 9562, section 5.7) of the time and
// 74 random bits. A library would read the clock again for every answer.
func (s *Stamper) Next(now time.Time) Stamp {
	st := Stamp{Time: now.UnixMilli()}
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], uint64(st.Time)<<16|0x7000|s.random.Uint64()&0x0fff)
	binary.BigEndian.PutUint64(id[8:], 1<<63|s.random.Uint64()>>2)
	writeUUID(&st.ID, &id)
	return st
}

// NewID returns a new UUIDv7 in text form.
func (s *Stamper) NewID() string {
	st := s.Next(time.Now())
	return string(st.ID[:])
}

// writeUUID writes id in text form.
func writeUUID(text *[36]byte, id *[16]byte) {
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
}
