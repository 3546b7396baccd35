// Package backup stores a kernel's journal in a single file. A backup can be written while the kernel appends.
//
// A backup is a tar archive, compressed with gzip. Its first member is a header with the number of files and their size;
// the last one is a manifest with the SHA-256 of each member in between, signed with the host key. In between is the
// journal up to a synced entry: its segments, checkpoints and redactions, and the anchor with its state if older entries
// are archived. A backup has no files that can be rebuilt (snapshots, the index), that must not exist twice (the private
// host key), or that are not the kernel's state (the configuration, agents' directories, uploads in progress).
//
// The second form also has files of the stores of steps, and of prompts, from after the journal's last entry. What they are
// is the caller's to know.
//
// A reader trusts nothing: a file that is truncated, changed, of another kind, or made to fill a disk is an error, and the
// files that were read so far have replaced nothing.
package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/promptware-os/pwos/journal"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// The forms: of the journal, and with steps.
const (
	Format      = 1
	FormatSteps = 2
)

// Names of the members that are not files of the state directory.
const (
	headerName   = "pwos-backup.json"
	manifestName = "manifest.json"
)

// KeyName is the name of the file with the key of the stores of steps, which is encrypted.
const KeyName = "steps/key.age"

// members matches the names of the files.
var members = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^journal/([0-9]{20}\.(ndjson|state)|checkpoints|redactions|anchor)$|^host_key\.pub$`)
})

// stepMembers matches the names of the files of steps.
var stepMembers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^steps/([0-9a-f]{16}/(root|used|current|(index|log|content)-[0-9]{1,20})|key\.age)$|^prompts/[0-9a-f]{64}$`)
})

// has reports whether a backup of this form may have a file.
func (h *Header) has(name string) bool {
	return members().MatchString(name) || h.Format == FormatSteps && stepMembers().MatchString(name)
}

// Header is the first member.
type Header struct {
	Format  int64  `json:"format" keep:"always" min:"1" doc:"Form of the file."`
	Version string `json:"version" keep:"always" doc:"Version of the program that wrote it."`
	Time    int64  `json:"time" keep:"always" min:"0" doc:"When: Unix epoch, milliseconds."`
	Files   int64  `json:"files" keep:"always" min:"1" doc:"How many files follow."`
	Bytes   int64  `json:"bytes" keep:"always" min:"1" doc:"How many bytes they have."`
}

// Member is the manifest's entry for a file.
type Member struct {
	Name  string `json:"name" keep:"always" minlen:"1" doc:"Path in the state directory."`
	Bytes int64  `json:"bytes" keep:"always" min:"0" doc:"Its length."`
	Sum   string `json:"sha256" keep:"always" minlen:"64" doc:"SHA-256, hexadecimal."`
}

// Manifest is the last member.
type Manifest struct {
	Header     Header       `json:"header" keep:"always" doc:"The first member again."`
	Instance   string       `json:"instance" keep:"always" doc:"Whose record it is; empty where the entry that says so is archived."`
	Epoch      int64        `json:"epoch" keep:"always" min:"0" doc:"Its epoch; 0 likewise."`
	Seq        int64        `json:"seq" keep:"always" min:"1" doc:"The last entry."`
	Hash       string       `json:"hash" keep:"always" minlen:"64" doc:"SHA-256 of its line, hexadecimal."`
	Archived   int64        `json:"archived,omitzero" keep:"always" min:"0" doc:"The last entry that is archived, and not here."`
	Checkpoint string       `json:"checkpoint,omitzero" keep:"always" doc:"The last line of checkpoints."`
	HostKey    string       `json:"host_key" keep:"always" minlen:"1" doc:"The kernel's public key, which signed this."`
	Members    []Member     `json:"members" keep:"always" doc:"The files."`
	Signature  schema.Value `json:"signature,omitzero" keep:"always" doc:"By the host key, over all but itself."`
}

// text returns the text that is signed.
func (m Manifest) text() ([]byte, error) {
	m.Signature = nil
	body, err := schema.Marshal(&m)
	return append([]byte("pwos-backup@v1\n"), body...), err
}

// Key is a host key: a journal.Signer.
type Key = journal.Signer

func (m *Manifest) sign(key Key) ([]byte, error) {
	m.HostKey = key.Public()
	text, err := m.text()
	if err != nil {
		return nil, err
	}
	if m.Signature, err = journal.SignText(key, text); err != nil {
		return nil, fmt.Errorf("sign backup: %w", err)
	}
	return schema.Marshal(m)
}

func parseManifest(text []byte) (*Manifest, error) {
	decoded, err := decode[Manifest](text)
	if err != nil {
		return nil, err
	}
	signed, err := decoded.text()
	if err == nil {
		err = journal.VerifyText(decoded.HostKey, signed, decoded.Signature)
	}
	return decoded, err
}

// decode decodes a member in JSON, strictly.
func decode[T any](text []byte) (*T, error) {
	if !schema.Valid(text) {
		return nil, errors.New("it is no JSON")
	}
	value, err := schema.TypeOf[T]().Decode(bytes.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	return value.(*T), nil
}

// broken returns the error for an invalid or incomplete backup.
func broken(format string, args ...any) error {
	return fault.BackupBroken.New("the backup cannot be used: %s; take another one: nothing was restored", fmt.Sprintf(format, args...))
}

// sum formats a SHA-256 for the manifest.
func sum(b []byte) string { return fmt.Sprintf("%x", b[:sha256.Size]) }
