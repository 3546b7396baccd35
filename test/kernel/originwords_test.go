package kernel_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/promptware-os/pwos/internal/testkit"
)

// blobDir is the directory of the blobs of an agent's origin.
type blobDir struct {
	own, foreign string // directories, which end in a slash
	place        string // of the kernel, which answers contain only in references
}

// newBlobDir returns the directory of the agent's origin and that of the other, which may not exist.
func newBlobDir(d *running, name string) blobDir {
	other := map[string]string{"a": "b", "b": "a"}[name]
	folder := func(name string) string {
		sum := sha256.Sum256([]byte(originOf(name)))
		return filepath.Join(d.cfg.RuntimeDir, "blobs", "o-"+hex.EncodeToString(sum[:16])) + "/"
	}
	return blobDir{own: folder(name), foreign: folder(other), place: filepath.Dir(d.cfg.RuntimeDir)}
}

// words replaces the kernel's numbers: PIDs by their owners, other numbers by nothing; and references by the content of the
// blob.
type words struct {
	t       *testing.T
	own     []int64
	foreign int64
	blobs   blobDir
}

var (
	pidText  = regexp.MustCompile(`(pid |grant |proc/)(\d+)`)
	blobWord = regexp.MustCompile(`"blob [0-9a-f]{64}"`)
	// scratch is the random name of the directory of one call of a program.
	scratch = regexp.MustCompile(`/scratch/call-\d+/`)
)

func (w words) pid(pid int64) string {
	if i := slices.Index(w.own, pid); i >= 0 {
		return "own-" + strconv.Itoa(i)
	}
	if pid == 0 {
		return "operator"
	}
	return "foreign"
}

func (w words) of(member string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, inner := range v {
			// Whether a list fits its line depends on the digits of its numbers: it is compared as if it did.
			if list, is := strings.CutSuffix(name, "Ref"); is && slices.Contains([]string{"messages", "processes", "keys", "entries"}, list) {
				name, inner = list, w.read(inner)
			}
			out[name] = w.of(name, inner)
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v {
			out = append(out, w.of(member, inner))
		}
		if member == "keys" { // the order of PIDs depends on their digits
			slices.SortFunc(out, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		}
		return out
	case string:
		return w.text(v)
	case float64:
		switch member {
		case "pid", "child_pid", "target_pid", "receiver_pid", "sender_pid", "parent_pid", "granted_by", "counted_against", "delivered", "mailbox_full", "revoked":
			return w.pid(int64(v))
		case "seq", "since_seq", "intent", "next", "time", "msg_id", "checkpoint_id", "latency_us", "avg_latency_us", "p50_us", "p99_us":
			return "#"
		}
	}
	return value
}

func (w words) text(s string) string {
	switch {
	case strings.HasPrefix(s, w.blobs.own):
		content, err := os.ReadFile(s)
		testkit.Must(w.t, err)
		sum := sha256.Sum256(content)
		return "blob " + hex.EncodeToString(sum[:])
	case strings.HasPrefix(s, w.blobs.foreign):
		return "blob of another's"
	}
	s = scratch.ReplaceAllString(strings.ReplaceAll(s, w.blobs.place, "PLACE"), "/scratch/call/")
	return pidText.ReplaceAllStringFunc(s, func(text string) string {
		parts := pidText.FindStringSubmatch(text)
		pid, _ := strconv.ParseInt(parts[2], 10, 64)
		return parts[1] + w.pid(pid)
	})
}

// read returns the JSON in a blob of the agent's own.
func (w words) read(reference any) (value any) {
	ref, _ := reference.(map[string]any)
	path, _ := ref["path"].(string)
	content, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(content, &value)
	}
	if err != nil || !strings.HasPrefix(path, w.blobs.own) {
		w.t.Fatalf("%v: %v", reference, err)
	}
	return value
}
