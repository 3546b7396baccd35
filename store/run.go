package store

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"sort"

	"github.com/promptware-os/pwos/journal"
)

// RunEntries is how many entries the index takes in at once, as one run. Run n, counted from 1, is of the entries
// (n-1)*RunEntries+1 to n*RunEntries.
const RunEntries = 4096

// A run is divided into blocks; what the index answers with is blocks.
const (
	blockEntries = 256
	runBlocks    = RunEntries / blockEntries
)

// blockSet has a bit for each block of a run, the lowest for the first.
type blockSet uint16

const allBlocks = blockSet(1<<runBlocks - 1)

// runHead is what a run is of: the hash of its last entry, so that it can be compared with the journal, and the wall
// clock of each block, which may step back, so that no order is assumed.
type runHead struct {
	hash     journal.Hash
	wild     blockSet // blocks with an entry whose type could not be read: they fit every type and correlation
	from, to [runBlocks]int64
}

const runHeadLen = len(journal.Hash{}) + 2 + 16*runBlocks

func (h *runHead) encode() []byte {
	b := append(make([]byte, 0, runHeadLen+sealLen), h.hash[:]...)
	b = binary.BigEndian.AppendUint16(b, uint16(h.wild))
	for i := range runBlocks {
		b = binary.BigEndian.AppendUint64(b, uint64(h.from[i]))
		b = binary.BigEndian.AppendUint64(b, uint64(h.to[i]))
	}
	return b
}

func (h *runHead) decode(b []byte) error {
	if len(b) != runHeadLen {
		return fmt.Errorf("%w: head of a run is %d bytes long", ErrDamaged, len(b))
	}
	b = b[copy(h.hash[:], b):]
	h.wild = blockSet(binary.BigEndian.Uint16(b))
	b = b[2:]
	for i := range runBlocks {
		h.from[i] = int64(binary.BigEndian.Uint64(b[16*i:]))
		h.to[i] = int64(binary.BigEndian.Uint64(b[16*i+8:]))
	}
	return nil
}

// A posting list says in which blocks of a run a value stands: for each value its hash, four bytes, and the set of
// blocks, two bytes, sorted by hash. Two values of one hash share their blocks, which makes some too many, never one too
// few.
const (
	postingLen = 6
	setBits    = 16
)

// posting is hash and block of one entry, in a form that sorts by hash.
func posting(hash uint32, block int) uint64 { return uint64(hash)<<setBits | 1<<block }

// encodePostings sorts the list in place.
func encodePostings(list []uint64) []byte {
	slices.Sort(list)
	b := make([]byte, 0, len(list)*postingLen+sealLen)
	for i := 0; i < len(list); {
		hash, set := list[i]>>setBits, uint16(0)
		for ; i < len(list) && list[i]>>setBits == hash; i++ {
			set |= uint16(list[i])
		}
		b = binary.BigEndian.AppendUint32(b, uint32(hash))
		b = binary.BigEndian.AppendUint16(b, set)
	}
	return b
}

func findPosting(b []byte, hash uint32) blockSet {
	n := len(b) / postingLen
	i := sort.Search(n, func(i int) bool { return binary.BigEndian.Uint32(b[i*postingLen:]) >= hash })
	if i == n || binary.BigEndian.Uint32(b[i*postingLen:]) != hash {
		return 0
	}
	return blockSet(binary.BigEndian.Uint16(b[i*postingLen+4:]))
}

// A column of a run ends in a CRC-32C over it, the run and the column: an index in which a bit has flipped would else
// leave entries out without a word.
const sealLen = 4

func sealOf(run int64, column string, data []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli) // made once, by the library
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(run))
	sum := crc32.Update(crc32.Checksum([]byte(column), table), table, b[:])
	return crc32.Update(sum, table, data)
}

func seal(run int64, column string, data []byte) []byte {
	return binary.BigEndian.AppendUint32(data, sealOf(run, column, data))
}

func unseal(run int64, column string, sealed []byte) ([]byte, error) {
	n := len(sealed) - sealLen
	if n < 0 || binary.BigEndian.Uint32(sealed[n:]) != sealOf(run, column, sealed[:n]) {
		return nil, fmt.Errorf("%w: %s of run %d of the index are not what was written", ErrDamaged, column, run)
	}
	return sealed[:n], nil
}

// hashText and hashNumber are FNV-1a, 32 bits of it: what they give is in the file, so they may not change within a
// format.
func hashText(s string) uint32 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return h
}

func hashNumber(n int64) uint32 {
	h := uint32(2166136261)
	for range 8 {
		h = (h ^ uint32(n&0xff)) * 16777619
		n >>= 8
	}
	return h
}
