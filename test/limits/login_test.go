package limits_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	pwos "github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/transport/unixsock"
)

// flooders is the number of clients that connect concurrently: the limit of connections that have not logged in.
const flooders = access.AuthWaiting

// newKey creates a key and returns the text of its private file and its public line.
func newKey(t *testing.T) (signer *access.Signer, file []byte, line string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	testkit.Must(t, err)
	block, err := ssh.MarshalPrivateKey(private, "")
	testkit.Must(t, err)
	raw, err := ssh.NewSignerFromSigner(private)
	testkit.Must(t, err)
	if signer, err = access.NewSigner(raw, "test"); err != nil {
		t.Fatal(err)
	}
	return signer, pem.EncodeToMemory(block), signer.Key().String() + "\n"
}

// Thousands of failed logins, as fast as they are answered, delay no successful one, although they are from the same
// process: a refusal is delayed only where it takes no one's place. Nor do they fill the journal.
func TestBadLogins(t *testing.T) {
	t.Parallel()
	badLogins := int64(testkit.Rounds(4_000, 4_000, 10_000))
	good, file, line := newKey(t)
	stranger, _, _ := newKey(t)
	var home string
	d := startIn(t, func(dir string) {
		home = dir
		config := filepath.Join(dir, ".config", "pwos")
		err := errors.Join(os.MkdirAll(config, 0o700),
			os.WriteFile(filepath.Join(config, "authorized_keys"), []byte(line), 0o600),
			os.WriteFile(filepath.Join(dir, "key"), file, 0o600))
		testkit.Must(t, err)
	})
	socket := filepath.Join(d.dir, "kernel.sock")
	kinds := []func([]byte) []byte{
		func([]byte) []byte { return []byte(`{}`) },
		func(offer []byte) []byte { return signedWith(t, stranger, offer) },
		func(offer []byte) []byte { return signedWith(t, good, offer) }, // a signature of another text
	}
	var next atomic.Int64
	var flood sync.WaitGroup
	for range flooders {
		flood.Go(func() {
			for n := next.Add(1); n <= badLogins; n = next.Add(1) {
				if err := badLogin(socket, kinds[int(n)%len(kinds)]); err != nil {
					t.Errorf("bad login %d: %v", n, err)
					return
				}
			}
		})
	}
	options := pwos.Options{RuntimeDir: d.dir, Patience: time.Minute, Keys: pwos.Keys{
		Identity: filepath.Join(home, "key"), Known: access.KnownKernels{Path: filepath.Join(home, "known_kernels")},
	}}
	var took []time.Duration
	var past []int64 // failed logins that started meanwhile, as a measure of time that does not depend on the speed of the machine
	for next.Load() < badLogins && !t.Failed() {
		begin, before := time.Now(), next.Load()
		c, err := pwos.Dial(t.Context(), options)
		if err != nil {
			t.Errorf("a good login: %v", err)
			break
		}
		took, past = append(took, time.Since(begin)), append(past, next.Load()-before)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	flood.Wait()
	slices.Sort(took)
	slices.Sort(past)
	if len(took) < 10 {
		t.Fatalf("only %d good logins meanwhile: the flood was too short", len(took))
	}
	// Not the maximum, since the machine may stop for longer than that.
	slow, slowest := took[len(took)*99/100], took[len(took)-1]
	t.Logf("%d bad logins, %d good ones meanwhile: median %v, 99 of 100 within %v, slowest %v", badLogins, len(took), took[len(took)/2], slow, slowest)
	waited := past[len(past)*99/100]
	t.Logf("during a good login there were %d bad ones (median), 99 of 100 times at most %d", past[len(past)/2], waited)
	if waited > badLogins/10 {
		t.Errorf("for one of a hundred good logins, %d or more bad ones started and were refused first", waited)
	}

	c, err := pwos.Dial(t.Context(), options)
	testkit.Must(t, err)
	defer c.Close()
	answer, err := c.Call(t.Context(), schema.KindQuery, "Audit.Log", []byte(`{"type":"Kernel.LoginFailed","limit":1000}`))
	testkit.Must(t, err)
	if n := strings.Count(string(answer.Data), `"Kernel.LoginFailed"`); n < 10 || n > 200 {
		t.Errorf("the journal has %d entries about bad logins", n)
	}
}

// signedWith returns an answer that signs the offer itself.
func signedWith(t *testing.T, key *access.Signer, offer []byte) []byte {
	sig, err := key.Sign(context.Background(), access.Namespace, offer)
	if err != nil {
		t.Error(err)
		return []byte(`{}`)
	}
	data, err := schema.Marshal(map[string]string{"public_key": key.Key().String(), "signature": sig.Armor()})
	if err != nil {
		t.Error(err)
	}
	return data
}

// badLogin answers a prologue wrongly, and waits for the refusal and the end.
func badLogin(socket string, answer func([]byte) []byte) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	nc, err := unixsock.Dial(ctx, socket)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, nc.Close()) }()
	conn, err := unixsock.NewConn(nc, schema.OsMessage, schema.MaxLine)
	if err != nil {
		return err
	}
	if err := access.ClientPrologue(ctx, conn, func(offer []byte, _ time.Time) ([]byte, error) { return answer(offer), nil }); err != nil {
		return err
	}
	line, err := conn.Next()
	if err != nil {
		return err
	}
	if !strings.Contains(string(line), `"code":401`) {
		return errors.New("it was told " + string(line))
	}
	if _, err := conn.Next(); !errors.Is(err, io.EOF) && !errors.Is(err, syscall.ECONNRESET) {
		return errors.New("the connection was not closed")
	}
	return nil
}
