package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/journal/backup"
	"github.com/promptware-os/pwos/schema/fault"
)

func TestMain(m *testing.M) { os.Exit(testkit.Main(m)) }

type hostKey struct{ ed25519.PrivateKey }

func newHostKey(n byte) hostKey {
	return hostKey{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))}
}

func (k hostKey) Public() string {
	const kind = "ssh-ed25519"
	blob := append(binary.BigEndian.AppendUint32(nil, uint32(len(kind))), kind...)
	blob = binary.BigEndian.AppendUint32(blob, ed25519.PublicKeySize)
	return kind + " " + base64.StdEncoding.EncodeToString(append(blob, k.PrivateKey.Public().(ed25519.PublicKey)...))
}

func (k hostKey) Sign(data []byte) ([]byte, error) { return ed25519.Sign(k.PrivateKey, data), nil }

// record returns a state directory with a journal whose log is open.
func record(t *testing.T) (dir string, log *journal.Log) {
	t.Helper()
	dir = t.TempDir()
	log, _, err := journal.Open(journal.Options{Dir: filepath.Join(dir, "journal"), SegmentBytes: 2000, Signer: newHostKey(1), CheckpointEvery: 4})
	testkit.Must(t, err)
	t.Cleanup(func() { testkit.Must(t, log.Close()) })
	log.Append(booted())
	grow(t, log, 20)
	return dir, log
}

// booted returns the entry of a start.
func booted() *journal.Entry {
	return &journal.Entry{
		Origin: "https://my-os.local/", Conn: "kernel",
		Request: fmt.Appendf(nil, `{"kind":"command","type":"Kernel.Booted","data":{"instance":"one","epoch":3,"host_key":%q},"metadata":{"id":"x","timestamp":1}}`,
			newHostKey(1).Public()),
		Outcome: []byte(`{"kind":"reply","data":null}`),
	}
}

func grow(t *testing.T, log *journal.Log, n int) {
	t.Helper()
	for range n {
		log.Append(&journal.Entry{Time: 1, PID: 7, Request: []byte(`{"kind":"command","type":"Memory.Set"}`), Outcome: []byte(`{"kind":"reply","data":null}`)})
		testkit.Must(t, log.Flush())
		_, err := log.Sync()
		testkit.Must(t, err)
		testkit.Must(t, log.Checkpoint())
	}
}

func write(t *testing.T, dir string, key backup.Key) ([]byte, *backup.Manifest) {
	t.Helper()
	var out bytes.Buffer
	m, running, err := backup.Write(t.Context(), &out, backup.Source{Dir: dir, Key: key, Version: "test", Now: time.Now})
	testkit.Must(t, err)
	if !running {
		t.Error("the journal's owner was not seen")
	}
	return out.Bytes(), m
}

func read(ctx context.Context, text []byte, dir string) (*backup.Manifest, error) {
	return backup.Read(ctx, bytes.NewReader(text), dir, func() (int64, error) { return math.MaxInt64, nil })
}

// A backup is the journal up to the last synced entry, whatever is appended meanwhile.
func TestBackup(t *testing.T) {
	t.Parallel()
	dir, log := record(t)
	log.Append(&journal.Entry{}) // written, but not synced
	testkit.Must(t, log.Flush())
	text, m := write(t, dir, newHostKey(1))
	grow(t, log, 3)
	if m.Seq != 21 || m.Instance != "one" || m.Epoch != 3 {
		t.Fatalf("got %+v", m)
	}
	into := t.TempDir()
	got, err := read(t.Context(), text, into)
	testkit.Must(t, err)
	restored, rec, err := journal.Open(journal.Options{Dir: filepath.Join(into, "journal")})
	testkit.Must(t, err)
	testkit.Must(t, restored.Close())
	if rec.Head.Seq != 21 || rec.Head.Hash.String() != got.Hash || rec.Cut != nil {
		t.Errorf("restored %+v", rec)
	}
}

// After a power cut the head mark may be old or missing. Without a kernel, all whole lines are backed up.
func TestBackupOfAStoppedKernel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	journalDir := filepath.Join(dir, "journal")
	log, _, err := journal.Open(journal.Options{Dir: journalDir, SegmentBytes: 2000, Signer: newHostKey(1)})
	testkit.Must(t, err)
	log.Append(booted())
	grow(t, log, 10)
	lagging, err := os.ReadFile(filepath.Join(journalDir, "head"))
	testkit.Must(t, err)
	grow(t, log, 10)
	testkit.Must(t, log.Close())
	for _, mark := range [][]byte{lagging, nil} {
		testkit.Must(t, os.WriteFile(filepath.Join(journalDir, "head"), mark, 0o600))
		var out bytes.Buffer
		m, running, err := backup.Write(t.Context(), &out, backup.Source{Dir: dir, Key: newHostKey(1), Now: time.Now})
		testkit.Must(t, err)
		if m.Seq != 21 || running {
			t.Errorf("with %d bytes of a head mark: up to entry %d, running %v", len(mark), m.Seq, running)
		}
		_, err = read(t.Context(), out.Bytes(), t.TempDir())
		testkit.Must(t, err)
	}
}

// Every truncated file is refused, and every file with a changed byte.
func TestBackupTornOrAltered(t *testing.T) {
	t.Parallel()
	dir, _ := record(t)
	text, _ := write(t, dir, newHostKey(1))
	for n := 0; n < len(text); n += 1 + n/40 {
		if _, err := read(t.Context(), text[:n], t.TempDir()); !errors.Is(err, fault.BackupBroken) {
			t.Errorf("%d of %d bytes: %v", n, len(text), err)
		}
		altered := bytes.Clone(text)
		altered[n] ^= 0x55
		if _, err := read(t.Context(), altered, t.TempDir()); n > 9 && !errors.Is(err, fault.BackupBroken) { // before that: time and system of gzip
			t.Errorf("byte %d altered: %v", n, err)
		}
	}
}

// A forged backup is refused, and writes nothing outside of its directory.
func TestBackupHostile(t *testing.T) {
	t.Parallel()
	dir, _ := record(t)
	good, _ := write(t, dir, newHostKey(1))
	for name, change := range map[string]func(h *tar.Header, body []byte) (*tar.Header, []byte){
		"up":        renamed("journal/checkpoints", "../../escaped"),
		"absolute":  renamed("journal/checkpoints", "/tmp/escaped"),
		"elsewhere": renamed("journal/checkpoints", "journal/../host_key"),
		"a key":     renamed("host_key.pub", "host_key"),
		"steps":     renamed("host_key.pub", "steps/0123456789abcdef/root"), // of the other form
		"twice":     renamed("host_key.pub", "journal/checkpoints"),
		"link": func(h *tar.Header, body []byte) (*tar.Header, []byte) {
			if h.Name == "host_key.pub" {
				return &tar.Header{Name: "journal/anchor", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}, nil
			}
			return h, body
		},
		"bomb": func(h *tar.Header, body []byte) (*tar.Header, []byte) {
			if h.Name == "host_key.pub" {
				body = make([]byte, 32<<20)
			}
			return h, body
		},
		"edited": func(h *tar.Header, body []byte) (*tar.Header, []byte) {
			return h, bytes.Replace(body, []byte(`"pid":7`), []byte(`"pid":8`), 1)
		},
		"other manifest": func(h *tar.Header, body []byte) (*tar.Header, []byte) {
			return h, bytes.Replace(body, []byte(`"epoch":3`), []byte(`"epoch":4`), 1)
		},
		"no manifest": func(h *tar.Header, body []byte) (*tar.Header, []byte) {
			if h.Name == "manifest.json" {
				return nil, nil
			}
			return h, body
		},
		"another form": func(h *tar.Header, body []byte) (*tar.Header, []byte) {
			return h, bytes.Replace(body, []byte(`"format":1`), []byte(`"format":3`), 1)
		},
	} {
		into := filepath.Join(t.TempDir(), "deep", "er")
		testkit.Must(t, os.MkdirAll(into, 0o700))
		if _, err := read(t.Context(), remade(t, good, change), into); !errors.Is(err, fault.BackupBroken) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(filepath.Dir(into)); err != nil || len(left) != 1 {
			t.Errorf("%s: files were written outside of the directory: %v, %v", name, left, err)
		}
	}
	foreign, _ := write(t, dir, newHostKey(2))
	if _, err := read(t.Context(), foreign, t.TempDir()); !errors.Is(err, fault.BackupBroken) {
		t.Errorf("signed with another key: %v", err)
	}
	_, err := backup.Read(t.Context(), bytes.NewReader(good), t.TempDir(), func() (int64, error) { return 100, nil })
	if err == nil || !strings.Contains(err.Error(), "100 are free") {
		t.Errorf("without room: %v", err)
	}
}

// A backup with steps has files that the caller knows, from after the last entry, and no others.
func TestBackupWithSteps(t *testing.T) {
	t.Parallel()
	dir, _ := record(t)
	whole := make(map[string]string)
	for _, name := range []string{
		"steps/0123456789abcdef/root", "steps/0123456789abcdef/used", "steps/0123456789abcdef/current", "steps/0123456789abcdef/index-7",
		"steps/0123456789abcdef/log-7", "steps/0123456789abcdef/content-7", backup.KeyName, "prompts/" + strings.Repeat("0a", 32),
	} {
		whole[name] = "text of " + name
	}
	with := func(files map[string]string) []byte {
		t.Helper()
		var out bytes.Buffer
		m, _, err := backup.Write(t.Context(), &out, backup.Source{Dir: dir, Key: newHostKey(1), Version: "test", Now: time.Now, Steps: func() (list []backup.File, _ error) {
			for name, text := range files {
				list = append(list, backup.File{Name: name, Size: int64(len(text)), ReaderAt: strings.NewReader(text + ", and what follows")})
			}
			return list, nil
		}})
		testkit.Must(t, err)
		if m.Header.Format != backup.FormatSteps {
			t.Errorf("form %d", m.Header.Format)
		}
		return out.Bytes()
	}
	into := t.TempDir()
	_, err := read(t.Context(), with(whole), into)
	testkit.Must(t, err)
	for name, text := range whole {
		if got := testkit.ReadFile(t, filepath.Join(into, name)); got != text {
			t.Errorf("%s: %q", name, got)
		}
	}
	for _, name := range []string{
		"steps/key", "steps/0123456789abcdef/../../host_key", "steps/0123456789ABCDEF/root", "steps/0123456789abcdef/other", "prompts/x", "homes/a", "steps/0123456789abcdef/log-7/x",
	} {
		if _, err := read(t.Context(), with(map[string]string{name: "x"}), t.TempDir()); !errors.Is(err, fault.BackupBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, _, err = backup.Write(t.Context(), io.Discard, backup.Source{Dir: dir, Key: newHostKey(1), Now: time.Now, Steps: func() ([]backup.File, error) { return nil, io.ErrNoProgress }})
	if !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("steps that cannot be read: %v", err)
	}
}

func renamed(from, to string) func(h *tar.Header, body []byte) (*tar.Header, []byte) {
	return func(h *tar.Header, body []byte) (*tar.Header, []byte) {
		if h.Name == from {
			h.Name = to
		}
		return h, body
	}
}

// remade returns a backup with changed members.
func remade(t *testing.T, text []byte, change func(*tar.Header, []byte) (*tar.Header, []byte)) []byte {
	t.Helper()
	packed, err := gzip.NewReader(bytes.NewReader(text))
	testkit.Must(t, err)
	in := tar.NewReader(packed)
	var all bytes.Buffer
	repacked := gzip.NewWriter(&all)
	out := tar.NewWriter(repacked)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		testkit.Must(t, err)
		body, err := io.ReadAll(in)
		testkit.Must(t, err)
		if h, body = change(h, body); h == nil {
			continue
		}
		h.Size = int64(len(body))
		testkit.Must(t, out.WriteHeader(h))
		_, err = out.Write(body)
		testkit.Must(t, err)
	}
	testkit.Must(t, errors.Join(out.Close(), repacked.Close()))
	return all.Bytes()
}

// A damaged journal is not backed up.
func TestBackupOfDamage(t *testing.T) {
	t.Parallel()
	dir, _ := record(t)
	path := filepath.Join(dir, "journal", "00000000000000000001.ndjson")
	text, err := os.ReadFile(path)
	testkit.Must(t, err)
	testkit.Must(t, os.WriteFile(path, bytes.Replace(text, []byte(`"pid":7`), []byte(`"pid":8`), 1), 0o600))
	_, _, err = backup.Write(t.Context(), io.Discard, backup.Source{Dir: dir, Key: newHostKey(1), Now: time.Now})
	if !errors.Is(err, fault.StateDamaged) {
		t.Errorf("got %v", err)
	}
}
