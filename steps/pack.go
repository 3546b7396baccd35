package steps

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/crypto/chacha20poly1305"

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
	open   [2]frame // pieces that are not written yet: plain ones, and those to be sealed
	box    *box     // nil: nothing can be sealed
	zip    *zstd.Encoder
	unzip  *zstd.Decoder
	last   struct {
		at     int64
		pieces []byte
	}
}

// place is where a piece is: in the frame at an offset of the file, -1 for the open one.
type place struct {
	frame      int64
	from, size uint32
}

type frame struct {
	refs  []Ref
	sizes []uint32
	bytes []byte
}

// openPack opens a file of contents, of which the first synced bytes are known to be durable, and cuts what a crash has left behind its
// last complete frame.
func openPack(fsys journal.FS, name string, key []byte, synced int64) (p *pack, err error) {
	p = &pack{at: make(map[Ref]place)}
	if p.box, err = newBox(key); err != nil {
		return nil, err
	}
	if p.zip, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1)); err != nil {
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
	sealed bool
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
	all := p.open[half(secret)].bytes
	if where.frame >= 0 {
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
	p.at[ref] = place{-1, uint32(len(f.bytes)), uint32(len(piece))}
	f.refs, f.sizes, f.bytes = append(f.refs, ref), append(f.sizes, uint32(len(piece))), append(f.bytes, piece...)
	if len(f.bytes) >= frameSize {
		return ref, p.write(half(secret))
	}
	return ref, nil
}

// write writes an open frame.
func (p *pack) write(which int) error {
	f := &p.open[which]
	if len(f.refs) == 0 {
		return nil
	}
	body := p.zip.EncodeAll(f.bytes, nil)
	if which == half(true) {
		body = p.box.seal(body)
	}
	h := header{frame: *f, sealed: which == half(true), packed: uint64(len(body)), sum: crc32.Checksum(body, castagnoli)}
	begin := h.encode()
	if _, err := p.file.WriteAt(append(begin, body...), p.size); err != nil {
		return fmt.Errorf("write contents: %w", err)
	}
	p.enter(f, p.size)
	p.size += int64(len(begin) + len(body))
	f.refs, f.sizes, f.bytes = nil, nil, f.bytes[:0]
	return nil
}

// sync makes everything durable that was put.
func (p *pack) sync() error {
	if err := errors.Join(p.write(half(false)), p.write(half(true))); err != nil {
		return err
	}
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

// box seals contents with a key of the kernel.
type box struct {
	aead cipher.AEAD
	mac  []byte
}

// newBox returns nil without a key.
func newBox(key []byte) (*box, error) {
	if len(key) == 0 {
		return nil, nil
	}
	derive := func(what string) ([]byte, error) { return hkdf.Key(sha256.New, key, nil, "steps: "+what, 32) }
	sealing, err := derive("content")
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	mac, err := derive("name")
	if err != nil {
		return nil, fmt.Errorf("derive key: %w", err)
	}
	aead, err := chacha20poly1305.NewX(sealing)
	return &box{aead, mac}, err
}

func (b *box) name(piece []byte) (ref Ref) {
	h := hmac.New(sha256.New, b.mac)
	h.Write(piece)
	h.Sum(ref[:0])
	return ref
}

func (b *box) seal(plain []byte) []byte {
	nonce := make([]byte, b.aead.NonceSize(), b.aead.NonceSize()+len(plain)+b.aead.Overhead())
	rand.Read(nonce)
	return b.aead.Seal(nonce, nonce, plain, nil)
}

func (b *box) open(sealed []byte) ([]byte, error) {
	if b == nil || len(sealed) < b.aead.NonceSize() {
		return nil, fmt.Errorf("%w: there is no key to open it with", ErrMissing)
	}
	plain, err := b.aead.Open(nil, sealed[:b.aead.NonceSize()], sealed[b.aead.NonceSize():], nil)
	if err != nil {
		return nil, fmt.Errorf("%w: it is sealed with another key", ErrMissing)
	}
	return plain, nil
}
