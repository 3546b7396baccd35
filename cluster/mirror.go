package cluster

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema/fault"
)

const (
	// mirrorSegment is the size in bytes at which a mirror starts another file.
	mirrorSegment = journal.DefaultSegmentBytes
	// checkpointEvery is how many entries a mirror stores between two checkpoints; it always stores the last checkpoint.
	checkpointEvery = journal.DefaultCheckpointEvery
)

// Mirror updates the copy of a kernel's journal in dir from the stream, as files that "pwos audit verify" reads. It creates
// dir if it is missing. It checks the whole stream, also the entries that dir already has, so that a rewritten stream is
// found. The error is that of Verify, or of a file.
func Mirror(ctx context.Context, js jetstream.JetStream, kernel string, keys []access.PublicKey, dir string) (_ *Report, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of the mirror: %w", err)
	}
	m := &mirrorSink{dir: dir}
	if m.has, err = held(ctx, dir); err != nil {
		return nil, err
	}
	if err := m.readChecked(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	report, err := Verify(ctx, js, kernel, keys, m)
	if errors.Is(err, fault.ClusterNoStream) && m.has.Seq > 0 {
		report, err = &Report{Kernel: kernel}, nil
	}
	if err != nil {
		return nil, err
	}
	if m.changed == "" && report.Head.Seq < m.has.Seq {
		m.changed = fmt.Sprintf("the stream ends with entry %d, and this mirror has entries up to %d: the bus has lost them, or withholds them", report.Head.Seq, m.has.Seq)
	}
	if report.Finding == nil && m.changed != "" {
		report.Finding = &journal.DamageError{
			File: "stream " + Stream(kernel), Seq: m.has.Seq, Reason: m.changed,
			Remedy: "keep the mirror; a kernel that runs sends again what the bus has lost, and \"pwos cluster status\" there shows how far its copy is",
		}
	}
	return report, nil
}

// held checks the files of a mirror in full, and returns the last entry.
func held(ctx context.Context, dir string) (journal.Head, error) {
	report, err := journal.Verify(ctx, nil, dir, journal.VerifyOptions{})
	if err != nil {
		return journal.Head{}, fmt.Errorf("read mirror: %w", err)
	}
	if !report.OK() {
		return journal.Head{}, report.Findings[0]
	}
	if report.TornBytes > 0 { // of an interrupted run
		info, err := os.Stat(report.TornFile)
		if err == nil {
			err = os.Truncate(report.TornFile, info.Size()-report.TornBytes)
		}
		if err != nil {
			return journal.Head{}, fmt.Errorf("cut unfinished line off: %w", err)
		}
	}
	return report.Head, nil
}

// mirrorSink is the Sink that writes the mirror.
type mirrorSink struct {
	dir     string
	has     journal.Head // what the files had at the start
	changed string       // how the stream contradicts the files; "": it does not

	file    *os.File
	out     *bufio.Writer
	size    int64
	checked uint64
	last    journal.Checkpoint // the latest, if it is not written yet; otherwise zero
}

// Line implements Sink.
func (m *mirrorSink) Line(record *journal.Record) error {
	switch {
	case record.Seq < m.has.Seq:
		return nil
	case record.Seq == m.has.Seq:
		if record.Hash != m.has.Hash {
			m.changed = "the stream has another entry than this mirror: one of them was rewritten"
		}
		return nil
	case m.changed != "":
		return nil
	}
	if m.file == nil || m.size >= mirrorSegment {
		if err := m.segment(record.Seq); err != nil {
			return err
		}
	}
	m.size += int64(len(record.Line)) + 1
	_, err := m.out.Write(record.Line)
	if err == nil {
		err = m.out.WriteByte('\n')
	}
	if err != nil {
		return fmt.Errorf("write mirror: %w", err)
	}
	return nil
}

// segment opens the last file, or starts the file that begins with entry first.
func (m *mirrorSink) segment(first uint64) error {
	if err := m.flush(); err != nil {
		return err
	}
	path, flags := filepath.Join(m.dir, fmt.Sprintf("%020d.ndjson", first)), os.O_WRONLY|os.O_CREATE|os.O_EXCL
	if m.file == nil {
		if files, err := filepath.Glob(filepath.Join(m.dir, "*.ndjson")); err == nil && len(files) > 0 {
			path, flags = files[len(files)-1], os.O_WRONLY|os.O_APPEND
		}
	}
	file, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return fmt.Errorf("write mirror: %w", err)
	}
	info, err := file.Stat()
	if err != nil {
		return errors.Join(err, file.Close())
	}
	m.file, m.out, m.size = file, bufio.NewWriterSize(file, groupBytes), info.Size()
	return nil
}

// flush syncs and closes the file.
func (m *mirrorSink) flush() error {
	if m.file == nil {
		return nil
	}
	err := errors.Join(m.out.Flush(), m.file.Sync(), m.file.Close())
	m.file = nil
	if err != nil {
		return fmt.Errorf("write mirror: %w", err)
	}
	return nil
}

// Checkpoint implements Sink.
func (m *mirrorSink) Checkpoint(c journal.Checkpoint) error {
	if c.Seq <= m.checked || m.changed != "" {
		return nil
	}
	if m.last = c; c.Seq < m.checked+checkpointEvery {
		return nil
	}
	return m.vouch()
}

// vouch writes the latest checkpoint, after the lines that it covers.
func (m *mirrorSink) vouch() error {
	if m.last.Seq == 0 {
		return nil
	}
	if m.out != nil {
		if err := m.out.Flush(); err != nil {
			return fmt.Errorf("write mirror: %w", err)
		}
	}
	file, err := os.OpenFile(m.checkpoints(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	_, err = file.Write(append(m.last.AppendLine(nil), '\n'))
	m.checked, m.last = m.last.Seq, journal.Checkpoint{}
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return fmt.Errorf("write checkpoint: %w", err)
	}
	return nil
}

func (m *mirrorSink) checkpoints() string { return filepath.Join(m.dir, "checkpoints") }

// readChecked reads the last checkpoint of the mirror.
func (m *mirrorSink) readChecked() error {
	file, err := os.Open(m.checkpoints())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read mirror: %w", err)
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return file.Close()
		}
		if err != nil {
			return errors.Join(fmt.Errorf("read mirror: %w", err), file.Close())
		}
		c, err := journal.ParseCheckpoint([]byte(strings.TrimSuffix(line, "\n")))
		if err != nil {
			return errors.Join(fmt.Errorf("read mirror: %w", err), file.Close())
		}
		m.checked = c.Seq
	}
}

func (m *mirrorSink) close() error {
	return errors.Join(m.flush(), m.vouch())
}
