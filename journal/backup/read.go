package backup

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/promptware-os/pwos/journal"
)

// smallBytes bounds the members that are not files of the state directory, in bytes.
const smallBytes = 64 << 20

// Read reads a backup into dir, an empty directory, and verifies the signature of its manifest, each file, and the chain of
// the journal with its checkpoints under the key that the journal names. free returns how many bytes may be written; it is
// called after the header is read. The error is a fault.BackupBroken if the backup is invalid.
func Read(ctx context.Context, r io.Reader, dir string, free func() (int64, error)) (*Manifest, error) {
	packed, err := gzip.NewReader(reading{ctx, r})
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	in := tar.NewReader(packed)
	header, err := readHeader(ctx, in)
	if err != nil {
		return nil, err
	}
	room, err := free()
	if err != nil {
		return nil, err
	}
	if header.Bytes > room {
		return nil, fmt.Errorf("the backup has %d bytes of files, and %d are free", header.Bytes, room)
	}
	found, manifest, err := readFiles(ctx, in, dir, header)
	if err != nil {
		return nil, err
	}
	if _, err := io.Copy(io.Discard, packed); err != nil { // reads the checksum at the end of the stream
		return nil, unreadable(ctx, err)
	}
	if err := compare(found, manifest, header); err != nil {
		return nil, err
	}
	if err := check(ctx, dir, manifest); err != nil {
		return nil, err
	}
	return manifest, syncDirs(dir, found)
}

// unreadable returns the error for a stream that is not a complete backup.
func unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return err
	}
	return broken("it is no whole backup: %v", err)
}

func readHeader(ctx context.Context, in *tar.Reader) (*Header, error) {
	member, err := in.Next()
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	if member.Name != headerName {
		return nil, broken("it does not begin with %s", headerName)
	}
	text, err := small(ctx, in, member)
	if err != nil {
		return nil, err
	}
	header, err := decode[Header](text)
	switch {
	case err != nil:
		return nil, broken("its header is not one: %v", err)
	case header.Format > FormatSteps:
		return nil, broken("it is of form %d, and this program reads forms up to %d", header.Format, FormatSteps)
	}
	return header, nil
}

// small reads a member that is not a file of the state directory.
func small(ctx context.Context, in *tar.Reader, member *tar.Header) ([]byte, error) {
	if member.Typeflag != tar.TypeReg || member.Size > smallBytes {
		return nil, broken("%s is no file of JSON", member.Name)
	}
	text, err := io.ReadAll(in)
	if err != nil {
		return nil, unreadable(ctx, err)
	}
	return text, nil
}

// readFiles writes the files, at most as many bytes as the header says, and returns the manifest that follows them.
func readFiles(ctx context.Context, in *tar.Reader, dir string, header *Header) (found map[string]Member, m *Manifest, err error) {
	found = make(map[string]Member)
	left := header.Bytes
	for {
		member, err := in.Next()
		if err != nil {
			return nil, nil, unreadable(ctx, err)
		}
		if member.Name == manifestName {
			text, err := small(ctx, in, member)
			if err != nil {
				return nil, nil, err
			}
			if m, err = parseManifest(text); err != nil {
				return nil, nil, broken("its manifest: %v", err)
			}
			if _, err := in.Next(); !errors.Is(err, io.EOF) {
				return nil, nil, broken("something follows its manifest")
			}
			return found, m, nil
		}
		_, twice := found[member.Name]
		switch {
		case member.Typeflag != tar.TypeReg || !header.has(member.Name):
			return nil, nil, broken("it has a member %q, which no backup has", member.Name)
		case twice:
			return nil, nil, broken("it has %s twice", member.Name)
		case member.Size > left || int64(len(found)) == header.Files:
			return nil, nil, broken("it has more than its header says")
		}
		left -= member.Size
		if found[member.Name], err = extract(ctx, in, dir, member); err != nil {
			return nil, nil, err
		}
	}
}

// extract writes one file and syncs it, but not its name.
func extract(ctx context.Context, in *tar.Reader, dir string, member *tar.Header) (m Member, err error) {
	path := filepath.Join(dir, filepath.FromSlash(member.Name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return m, err
	}
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return m, err
	}
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(out, h), in)
	if err != nil {
		return m, errors.Join(unreadable(ctx, err), out.Close())
	}
	return Member{Name: member.Name, Bytes: n, Sum: sum(h.Sum(nil))}, errors.Join(out.Sync(), out.Close())
}

// compare compares the files that were read with the manifest.
func compare(found map[string]Member, m *Manifest, header *Header) error {
	if m.Header != *header || len(m.Members) != len(found) {
		return broken("its manifest is of another backup")
	}
	for _, want := range m.Members {
		if got := found[want.Name]; got != want {
			return broken("%s is not the file that the manifest names", want.Name)
		}
	}
	return nil
}

// check verifies the journal, and that the manifest describes it.
func check(ctx context.Context, dir string, m *Manifest) error {
	named := ""
	report, err := journal.Verify(ctx, nil, filepath.Join(dir, "journal"), journal.VerifyOptions{
		Keys: []string{m.HostKey},
		Names: func(r *journal.Record) string {
			key := journal.NamedHostKey(r)
			if key != "" {
				named = key
			}
			return key
		},
	})
	switch {
	case err != nil:
		return err
	case !report.OK():
		return broken("its record is damaged: %v", report.Findings[0])
	case int64(report.Head.Seq) != m.Seq || report.Head.Hash.String() != m.Hash:
		return broken("its record ends with entry %d, and not with entry %d as its manifest says", report.Head.Seq, m.Seq)
	case named == "" && report.Anchor != nil:
		named = report.Anchor.Key
	}
	if named != m.HostKey {
		return broken("it is signed with another key than the host key that its record names")
	}
	return nil
}

// syncDirs syncs the names of the files.
func syncDirs(dir string, found map[string]Member) error {
	dirs := map[string]bool{dir: true}
	for name := range found {
		for at := filepath.Dir(filepath.FromSlash(name)); at != "."; at = filepath.Dir(at) {
			dirs[filepath.Join(dir, at)] = true
		}
	}
	for dir := range dirs {
		if err := (journal.OSFS{}).SyncDir(dir); err != nil {
			return fmt.Errorf("sync %s: %w", dir, err)
		}
	}
	return nil
}
