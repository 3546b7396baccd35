package journal_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/journal"
)

// TestMain makes garbage collection rarer: almost all allocations of these tests are disks in memory, of which there are
// thousands, and collection would take half of the time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(testkit.Main(m))
}

const dir = "/journal"

// hostKey is a Signer with a different key for each number.
type hostKey struct {
	key ed25519.PrivateKey
	err error
}

func newHostKey(n byte) *hostKey {
	seed := sha256.Sum256([]byte{n})
	return &hostKey{key: ed25519.NewKeyFromSeed(seed[:])}
}

func (k *hostKey) Public() string {
	const kind = "ssh-ed25519"
	blob := binary.BigEndian.AppendUint32(nil, uint32(len(kind)))
	blob = append(blob, kind...)
	blob = binary.BigEndian.AppendUint32(blob, ed25519.PublicKeySize)
	blob = append(blob, k.key.Public().(ed25519.PublicKey)...)
	return kind + " " + base64.StdEncoding.EncodeToString(blob)
}

func (k *hostKey) Sign(data []byte) ([]byte, error) {
	if k.err != nil {
		return nil, k.err
	}
	return ed25519.Sign(k.key, data), nil
}

// slowKey reports each request for a signature, and waits before it answers.
type slowKey struct {
	*hostKey

	asked, answer chan struct{}
}

func (k *slowKey) Sign(data []byte) ([]byte, error) {
	k.asked <- struct{}{}
	<-k.answer
	return k.hostKey.Sign(data)
}

func clock() time.Time { return time.UnixMilli(1735000000000) }

// entry returns the entry that tests append as seq, with a request of about size bytes.
func entry(seq uint64, size int) *journal.Entry {
	return &journal.Entry{
		Time: 1735000000000 + int64(seq), Tick: int64(seq / 10), PID: int64(seq % 7),
		Origin: "https://my-os.local/", Conn: "c-5",
		Request:   fmt.Appendf(nil, `{"kind":"command","type":"Memory.Set","data":{"n":%d,"pad":"%0*d"}}`, seq, size, 0),
		Outcome:   []byte(`{"kind":"reply","data":{"success":true}}`),
		LatencyUS: 14,
	}
}

// line returns the line that PROTOCOL 7 requires for an entry without escapes, computed without the package.
func line(seq uint64, prev [sha256.Size]byte, e *journal.Entry) string {
	return fmt.Sprintf(`{"seq":%d,"prev":"%x","time":%d,"tick":%d,"pid":%d,"origin":"%s","conn":"%s",`+
		`"request":%s,"outcome":%s,"latency_us":%d}`,
		seq, prev, e.Time, e.Tick, e.PID, e.Origin, e.Conn, e.Request, e.Outcome, e.LatencyUS)
}

func open(t testing.TB, o journal.Options) (*journal.Log, *journal.Recovery) {
	t.Helper()
	l, rec, err := journal.Open(o)
	testkit.Must(t, err)
	return l, rec
}

// grow appends n entries and flushes and syncs them in batches of three.
func grow(t testing.TB, l *journal.Log, n int) {
	t.Helper()
	for i := range n {
		l.Append(entry(l.Written()+uint64(i%3)+1, 10))
		if i%3 == 2 || i == n-1 {
			testkit.Must(t, l.Flush())
			_, err := l.Sync()
			testkit.Must(t, err)
		}
	}
}

func asDamage(t testing.TB, err error) *journal.DamageError {
	t.Helper()
	var damage *journal.DamageError
	if !errors.As(err, &damage) {
		t.Fatalf("got error %v, want a DamageError", err)
	}
	return damage
}
