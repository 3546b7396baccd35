package mail_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/daemon/config"
	"github.com/promptware-os/pwos/internal/testkit"
	"github.com/promptware-os/pwos/internal/testkit/testbus"
	"github.com/promptware-os/pwos/schema"
)

// authority issues certificates.
type authority struct {
	t    *testing.T
	dir  string
	file string // of its own certificate
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: testkit.Dir(t)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	a.file, _, a.key = a.sign("authority", a.cert, nil)
	return a
}

// sign makes the files of a certificate and of its key.
func (a *authority) sign(name string, form *x509.Certificate, by *ecdsa.PrivateKey) (cert, keyFile string, key *ecdsa.PrivateKey) {
	a.t.Helper()
	key = testkit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(a.t)
	if by == nil {
		by = key
	}
	der := testkit.Value(x509.CreateCertificate(rand.Reader, form, a.cert, key.Public(), by))(a.t)
	private := testkit.Value(x509.MarshalPKCS8PrivateKey(key))(a.t)
	cert, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	testkit.Must(a.t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	testkit.Must(a.t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	return cert, keyFile, key
}

// issue makes the files of a certificate for an address that begins and ends at times from now.
func (a *authority) issue(name, ip string, from, until time.Duration) (cert, key string) {
	a.t.Helper()
	cert, key, _ = a.sign(name, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until), IPAddresses: []net.IP{net.ParseIP(ip)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.key)
	return cert, key
}

// status is what the kernel says of its cluster.
func (n *node) status() *schema.ClusterStatusOutput {
	n.t.Helper()
	return testkit.Value(client.Call(testkit.Context(n.t), n.Client, schema.ClusterStatus, &schema.ClusterStatusInput{}))(n.t)
}

// A kernel that cannot reach the bus because of its certificate reports the reason and the fix. It joins after the fix.
func TestBusCertificate(t *testing.T) {
	t.Parallel()
	known, other := newAuthority(t), newAuthority(t)
	n := &node{name: "alpha"}
	line := n.home(t, "")
	n.know(line)
	bus := testbus.Start(t, line) // chooses the address
	n.with = func(cfg *config.Config) { cfg.Cluster.Authority = known.file }
	const day = 24 * time.Hour
	for i, c := range []struct {
		by          *authority
		ip          string
		from, until time.Duration
		want        []string
	}{
		{other, "127.0.0.1", -day, day, []string{"is of an authority that this kernel does not know", "set cluster.authority"}},
		{known, "127.0.0.1", -2 * day, -day, []string{"expired at ", "have a new one issued"}},
		{known, "127.0.0.1", day, 2 * day, []string{"is valid from ", "set the clock"}},
		{known, "127.0.0.9", -day, day, []string{"is for 127.0.0.9, not for 127.0.0.1", "cluster.bus"}},
		{known, "127.0.0.1", -day, day, nil},
	} {
		bus.Stop()
		bus.Cert, bus.Key = c.by.issue("bus", c.ip, c.from, c.until)
		bus.Restart()
		if i == 0 {
			n.bus = bus.URL()
			n.start()
		}
		if c.want == nil {
			reached(t, n)
			continue
		}
		var trouble string
		testkit.Eventually(t, strings.Join(c.want, ", "), func() bool {
			s := n.status()
			trouble = s.Trouble
			return !s.Connected && strings.Contains(trouble, c.want[0])
		})
		if !strings.Contains(trouble, c.want[1]) || strings.Contains(trouble, "x509") {
			t.Errorf("%q does not say %q", trouble, c.want[1])
		}
	}
}
