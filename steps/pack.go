package steps

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/promptware-os/pwos/journal"
)

const (
	pieceSize = 4 << 20 // a longer file is stored as a list of pieces
	frameSize = 1 << 20 // pieces are compressed together until there are this many bytes of them
)

// ErrMissing is the error for a content that is not in the store, or not readable there any more.
var ErrMissing = errors.New("content is missing")

// pack is the file of contents. Its frames are headers, each a record with flags, sizes and the names of pieces, with the compressed
// pieces behind.
type pack struct {
	file   journal.File
	size   int64 // of the frames that are written
	synced int64
	at     map[Ref]place
	open   [2]frame   // pieces that are not written yet: plain ones, and those to be sealed
	full   frame      // pieces that are being written, or that could not be written
	done   chan error // tells once how writing them beside went; nil: they are not being written
	box    *box       // nil: nothing can be sealed
	zip    *zstd.Encoder
	unzip  *zstd.Decoder
	last   struct {
		at     int64
		pieces []byte
	}
}

// place is where a piece is: in the frame at an offset of the file, or in one of these.
type place struct {
	frame      int64
	from, size uint32
}

// Frames that are not in the file.
const (
	inOpen = -1
	inFull = -2
)

type frame struct {
	refs  []Ref
	sizes []uint32
	bytes []byte

	sealed bool
	stored []byte // what the file gets of it
}

// openPack opens a file of contents, of which the first synced bytes are known to be durable, and cuts what a crash has left behind its
// last complete frame.
func openPack(fsys journal.FS, name string, key []byte, synced int64) (p *pack, err error) {
	p = &pack{at: make(map[Ref]place)}
	if p.box, err = newBox(key); err != nil {
		return nil, err
	}
	if p.zip, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(false), zstd.WithWindowSize(frameSize)); err != nil {
		return nil, fmt.Errorf("start compression: %w", err)
	}
	if p.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(2*pieceSize)); err != nil {
		return nil, fmt.Errorf("start decompression: %w", err)
	}
	if p.file, err = fsys.Create(name); err != nil {
		return nil, err
	}
	if err := p.load(synced); err != nil {
		return nil, errors.Join(err, p.file.Close())
	}
	return p, nil
}

// load reads the headers of all frames. Those that may not have been synced are read whole.
func (p *pack) load(synced int64) error {
	size, err := p.file.Size()
	if err != nil {
		return err
	}
	for p.size < size {
		h, length, err := readHeader(io.NewSectionReader(p.file, p.size, size-p.size))
		begin := p.size
		end := begin + length + int64(h.packed)
		if err != nil || end > size {
			break
		}
		if end > synced {
			p.size = end
			if _, _, err := p.body(begin); err != nil {
				p.size = begin
				break
			}
		}
		p.enter(&h.frame, begin)
		p.size = end
	}
	if p.size < size {
		if err := p.file.Truncate(p.size); err != nil {
			return fmt.Errorf("cut incomplete contents: %w", err)
		}
	}
	p.synced = p.size
	return nil
}

// enter makes the pieces of a frame known.
func (p *pack) enter(f *frame, at int64) {
	from := uint32(0)
	for i, ref := range f.refs {
		p.at[ref] = place{at, from, f.sizes[i]}
		from += f.sizes[i]
	}
}

// header is what stands before the compressed pieces of a frame.
type header struct {
	frame
	packed uint64 // bytes that follow
	sum    uint32 // their CRC
}

func (h *header) encode() []byte {
	var e encoder
	e.flags(h.sealed)
	e.number(h.packed)
	e.number(uint64(h.sum))
	e.number(uint64(len(h.refs)))
	for i, ref := range h.refs {
		e.b = append(e.b, ref[:]...)
		e.number(uint64(h.sizes[i]))
	}
	return seal(e.b)
}

// readHeader reads a header, and returns its length.
func readHeader(in io.Reader) (h header, length int64, err error) {
	begin := make([]byte, 8)
	if _, err := io.ReadFull(in, begin); err != nil {
		return h, 0, err
	}
	const most = 64 << 20
	size := binary.LittleEndian.Uint32(begin)
	if size > most {
		return h, 0, errTorn
	}
	whole := make([]byte, 8+int(size))
	copy(whole, begin)
	if _, err := io.ReadFull(in, whole[8:]); err != nil {
		return h, 0, err
	}
	record, _, err := unseal(whole)
	if err != nil {
		return h, 0, err
	}
	d := decoder{b: record}
	h.sealed, h.packed, h.sum = d.flag(d.number(), 0), d.number(), uint32(d.number())
	for range d.count() {
		h.refs = append(h.refs, Ref(d.bytes(uint64(len(Ref{})))))
		h.sizes = append(h.sizes, uint32(d.number()))
		if d.bad {
			return h, 0, errTorn
		}
	}
	return h, int64(len(whole)), nil
}

// body returns what is stored of the frame at an offset.
func (p *pack) body(at int64) (body []byte, sealed bool, err error) {
	h, length, err := readHeader(io.NewSectionReader(p.file, at, p.size-at))
	if err != nil {
		return nil, false, fmt.Errorf("%w: read frame: %w", ErrMissing, err)
	}
	body = make([]byte, h.packed)
	if _, err := p.file.ReadAt(body, at+length); err != nil {
		return nil, false, fmt.Errorf("%w: read frame: %w", ErrMissing, err)
	}
	if crc32.Checksum(body, castagnoli) != h.sum {
		return nil, false, fmt.Errorf("%w: the checksum of its frame does not fit", ErrMissing)
	}
	return body, h.sealed, nil
}

// pieces returns the pieces of the frame at an offset, one after the other.
func (p *pack) pieces(at int64) ([]byte, error) {
	if p.last.pieces != nil && p.last.at == at {
		return p.last.pieces, nil
	}
	body, sealed, err := p.body(at)
	if err != nil {
		return nil, err
	}
	if sealed {
		if body, err = p.box.open(body); err != nil {
			return nil, err
		}
	}
	out, err := p.unzip.DecodeAll(body, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: decompress: %w", ErrMissing, err)
	}
	p.last.at, p.last.pieces = at, out
	return out, nil
}

// piece returns a piece, which its name vouches for.
func (p *pack) piece(ref Ref, secret bool) ([]byte, error) {
	where, ok := p.at[ref]
	if !ok {
		return nil, fmt.Errorf("%w: %v", ErrMissing, ref)
	}
	var all []byte
	switch where.frame {
	case inOpen:
		all = p.open[half(secret)].bytes
	case inFull:
		all = p.full.bytes
	default:
		var err error
		if all, err = p.pieces(where.frame); err != nil {
			return nil, err
		}
	}
	if uint64(where.from)+uint64(where.size) > uint64(len(all)) {
		return nil, fmt.Errorf("%w: its frame is too short", ErrMissing)
	}
	out := all[where.from : where.from+where.size]
	if got, err := p.name(out, secret); err != nil || got != ref {
		return nil, errors.Join(err, fmt.Errorf("%w: its frame has another content", ErrMissing))
	}
	return out, nil
}

// name returns the Ref of a piece.
func (p *pack) name(piece []byte, secret bool) (Ref, error) {
	if !secret {
		return sha256.Sum256(piece), nil
	}
	if p.box == nil {
		return Ref{}, fmt.Errorf("%w: there is no key to seal it with", ErrMissing)
	}
	return p.box.name(piece), nil
}

func half(secret bool) int {
	if secret {
		return 1
	}
	return 0
}

// put stores a piece, unless it is stored. It is durable after sync.
func (p *pack) put(piece []byte, secret bool) (Ref, error) {
	ref, err := p.name(piece, secret)
	if err != nil {
		return ref, err
	}
	if _, ok := p.at[ref]; ok {
		return ref, nil
	}
	f := &p.open[half(secret)]
	p.at[ref] = place{inOpen, uint32(len(f.bytes)), uint32(len(piece))}
	f.refs, f.sizes, f.bytes = append(f.refs, ref), append(f.sizes, uint32(len(piece))), append(f.bytes, piece...)
	if len(f.bytes) >= frameSize {
		return ref, p.fill(f, secret)
	}
	return ref, nil
}

// fill ends an open frame. It is compressed and written beside what the caller does next; if one is at that already, the caller compresses
// its own meanwhile, so that two processors are in use, and there are never more than two frames.
func (p *pack) fill(f *frame, secret bool) error {
	f.sealed = secret
	beside := p.done == nil || len(p.done) > 0
	if !beside {
		p.compress(f)
	}
	if err := p.settle(); err != nil {
		return err
	}
	p.full, *f = *f, frame{bytes: p.full.bytes[:0], stored: p.full.stored[:0]}
	p.enter(&p.full, inFull)
	if !beside {
		return p.settle()
	}
	p.done = make(chan error, 1)
	go func(f *frame, at int64, done chan<- error) {
		p.compress(f)
		done <- p.write(f, at)
	}(&p.full, p.size, p.done)
	return nil
}

// settle returns when the full frame is written. If it cannot be, it stays, and the next settle tries again.
func (p *pack) settle() (err error) {
	if len(p.full.refs) == 0 {
		return nil
	}
	if p.done != nil {
		err, p.done = <-p.done, nil
	} else {
		if len(p.full.stored) == 0 {
			p.compress(&p.full)
		}
		err = p.write(&p.full, p.size)
	}
	if err != nil {
		return err
	}
	p.enter(&p.full, p.size)
	p.size += int64(len(p.full.stored))
	p.full = frame{bytes: p.full.bytes[:0], stored: p.full.stored[:0]}
	return nil
}

// compress makes what the file gets of a frame.
func (p *pack) compress(f *frame) {
	body := p.zip.EncodeAll(f.bytes, nil)
	if f.sealed {
		body = p.box.seal(body)
	}
	h := header{frame: *f, packed: uint64(len(body)), sum: crc32.Checksum(body, castagnoli)}
	f.stored = append(append(f.stored[:0], h.encode()...), body...)
}

// write writes a compressed frame at the end of the file.
func (p *pack) write(f *frame, at int64) error {
	if _, err := p.file.WriteAt(f.stored, at); err != nil {
		return fmt.Errorf("write contents: %w", err)
	}
	return nil
}

// sync makes everything durable that was put.
func (p *pack) sync() error {
	for i := range p.open {
		if f := &p.open[i]; len(f.refs) > 0 {
			if err := p.fill(f, i == half(true)); err != nil {
				return err
			}
		}
	}
	if err := p.settle(); err != nil {
		return err
	}
	p.open, p.full = [2]frame{}, frame{}
	if p.synced == p.size {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return fmt.Errorf("sync contents: %w", err)
	}
	p.synced = p.size
	return nil
}

// store stores what a reader has, and returns its name and its length.
func (p *pack) store(in io.Reader, secret bool, buffer []byte) (Ref, int64, error) {
	var list []byte
	var size int64
	var first Ref
	for {
		n, err := io.ReadFull(in, buffer[:pieceSize])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return Ref{}, size, err
		}
		size += int64(n)
		last := err != nil
		if n > 0 || size == 0 {
			ref, err := p.put(buffer[:n], secret)
			if err != nil {
				return ref, size, err
			}
			if len(list) == 0 {
				first = ref
			}
			list = append(list, ref[:]...)
		}
		if last {
			break
		}
	}
	if size <= pieceSize {
		return first, size, nil
	}
	ref, err := p.put(list, secret)
	return ref, size, err
}

// content returns a reader of a stored content.
func (p *pack) content(s State) (io.Reader, error) {
	if s.Lost {
		return nil, ErrMissing
	}
	piece, err := p.piece(s.Ref, s.Secret)
	if err != nil || s.Size <= pieceSize {
		return bytes.NewReader(bytes.Clone(piece)), err
	}
	return &pieces{p: p, secret: s.Secret, list: bytes.Clone(piece)}, nil
}

// pieces reads a list of pieces.
type pieces struct {
	p      *pack
	secret bool
	list   []byte
	now    []byte
}

func (l *pieces) Read(b []byte) (int, error) {
	for len(l.now) == 0 {
		if len(l.list) < len(Ref{}) {
			return 0, io.EOF
		}
		piece, err := l.p.piece(Ref(l.list[:len(Ref{})]), l.secret)
		if err != nil {
			return 0, err
		}
		l.now, l.list = bytes.Clone(piece), l.list[len(Ref{}):]
	}
	n := copy(b, l.now)
	l.now = l.now[n:]
	return n, nil
}

// covers reports whether the whole content is there.
func (p *pack) covers(s State) bool {
	in, err := p.content(s)
	if err != nil {
		return false
	}
	list, ok := in.(*pieces)
	if !ok {
		return true
	}
	for at := 0; at+len(Ref{}) <= len(list.list); at += len(Ref{}) {
		if _, ok := p.at[Ref(list.list[at:at+len(Ref{})])]; !ok {
			return false
		}
	}
	return true
}

func (p *pack) Close() error {
	p.unzip.Close()
	return errors.Join(p.sync(), p.zip.Close(), p.file.Close())
}
