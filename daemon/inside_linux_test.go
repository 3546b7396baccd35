package daemon_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/promptware-os/pwos/effect/egress"
	"github.com/promptware-os/pwos/internal/testkit"
)

// asInside in the environment makes this test binary start a program in a separate network.
const asInside = "PWOS_DAEMON_TEST_INSIDE"

// insideOnly is a host in the grants of agents whose sockets are created in a separate network.
const insideOnly = "inside.only.test"

// outside is the address of the servers of all names.
const outside = "127.0.0.153"

// everywhere resolves each name to outside.
type everywhere struct{}

func (everywhere) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr(outside)}, nil
}

// enterNetwork opens the sockets of an agent's network, sends them, and runs the program when they are served.
func enterNetwork() error {
	for _, args := range [][]string{
		{"ip", "link", "set", "lo", "up"},
		{"ip", "addr", "add", "198.18.0.1/15", "dev", "lo"},
		{"mount", "--make-rprivate", "/"},
		{"mount", "--bind", os.Getenv(asInside), "/etc/resolv.conf"},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, out)
		}
	}
	var fds []int
	keep := func(c interface {
		File() (*os.File, error)
	}, err error,
	) error {
		if err != nil {
			return err
		}
		f, err := c.File()
		if err == nil {
			fds = append(fds, int(f.Fd()))
		}
		return err
	}
	for _, at := range []string{"127.0.0.1:901", "127.0.0.1:53", "0.0.0.0:80", "0.0.0.0:443", "0.0.0.0:7000"} {
		addr, err := net.ResolveTCPAddr("tcp4", at)
		if err != nil {
			return err
		}
		if err := keep(net.ListenTCP("tcp4", addr)); err != nil {
			return err
		}
	}
	if err := keep(net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 53})); err != nil {
		return err
	}
	if err := unix.Sendmsg(3, []byte{'s'}, unix.UnixRights(fds...), nil, 0); err != nil {
		return err
	}
	if _, err := unix.Read(3, make([]byte, 1)); err != nil {
		return err
	}
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		return err
	}
	return syscall.Exec(path, os.Args[1:], os.Environ())
}

// inside runs a program in a separate network, which the daemon serves, and returns its output.
func (n *networked) inside(env []string, argv ...string) (string, error) {
	n.t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	testkit.Must(n.t, err)
	theirs := os.NewFile(uintptr(pair[1]), "hand")
	self, err := os.Executable()
	testkit.Must(n.t, err)
	resolv := filepath.Join(n.dir, "resolv.conf")
	testkit.Must(n.t, os.WriteFile(resolv, []byte("nameserver 127.0.0.1\noptions timeout:5\n"), 0o644))
	ctx, cancel := context.WithTimeout(n.t.Context(), testkit.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, argv...)
	cmd.Dir = n.t.TempDir()
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + cmd.Dir, asInside + "=" + resolv}, env...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	testkit.Must(n.t, cmd.Start())
	testkit.Must(n.t, theirs.Close())
	defer unix.Close(pair[0])
	s, err := handed(pair[0])
	if err != nil {
		_ = cmd.Wait()
		n.t.Fatalf("%v: %s", err, out.String())
	}
	stop := n.daemon.ServeNetwork(n.pid, s)
	defer stop()
	_, err = unix.Write(pair[0], []byte{'g'})
	testkit.Must(n.t, err)
	err = cmd.Wait()
	return out.String(), err
}

// handed receives the sockets that enterNetwork sends.
func handed(fd int) (s egress.Sockets, err error) {
	control := make([]byte, unix.CmsgSpace(16*4))
	_, size, _, _, err := unix.Recvmsg(fd, make([]byte, 1), control, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return s, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:size])
	if err != nil || len(messages) != 1 {
		return s, fmt.Errorf("no sockets: %w", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 6 {
		return s, fmt.Errorf("%d sockets: %w", len(fds), err)
	}
	var listeners []net.Listener
	for i, fd := range fds {
		f := os.NewFile(uintptr(fd), "socket")
		if i == 5 {
			s.DNS, err = net.FilePacketConn(f)
		} else {
			var l net.Listener
			l, err = net.FileListener(f)
			listeners = append(listeners, l)
		}
		_ = f.Close()
		if err != nil {
			return s, err
		}
	}
	s.Proxy, s.DNSTCP, s.Relay = listeners[0], listeners[1], listeners[2:]
	return s, nil
}

// outsideServer serves names over TLS, and over plain HTTP, and returns the file of their certificate authority.
func outsideServer(t *testing.T, h http.Handler, names ...string) (ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	testkit.Must(t, err)
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "outside"}, DNSNames: names, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	testkit.Must(t, err)
	ca = filepath.Join(t.TempDir(), "ca.pem")
	testkit.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	for _, port := range []string{"443", "80"} {
		l, err := net.Listen("tcp", outside+":"+port)
		if err != nil {
			t.Skipf("a server on port %s of %s: %v", port, outside, err)
		}
		if port == "443" {
			l = tls.NewListener(l, config)
		}
		server := &http.Server{Handler: h, ErrorLog: log.New(io.Discard, "", 0)}
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = server.Serve(l)
		}()
		t.Cleanup(func() {
			_ = server.Close()
			<-done
		})
	}
	return ca
}

// proxied returns the variables that direct programs to the proxy.
func proxied() []string {
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		env = append(env, name+"=http://127.0.0.1:901", strings.ToLower(name)+"=http://127.0.0.1:901")
	}
	return append(env, "NODE_USE_ENV_PROXY=1", "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1")
}

// Ordinary programs in a separate network reach only what is allowed, through the proxy and by names.
func TestNetworkInside(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may create a network namespace on this system")
	}
	for _, tool := range []string{"ip", "mount", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	files := t.TempDir()
	names := []string{"allowed.test", "other.test", "git.test", "npm.test", "pypi.test"}
	ca := outsideServer(t, site(t, files), names...)
	trust := []string{"CURL_CA_BUNDLE=" + ca, "GIT_SSL_CAINFO=" + ca, "NODE_EXTRA_CA_CERTS=" + ca, "PIP_CERT=" + ca, "REQUESTS_CA_BUNDLE=" + ca, "SSL_CERT_FILE=" + ca}
	n := openNetwork(t, nil, hosts("allowed.test", "git.test", "npm.test", "pypi.test", insideOnly))
	n.daemon.Resolve(everywhere{})

	tests := []struct {
		name string
		argv []string
		says string // "": the program fails
	}{
		{"curl", []string{"curl", "-sS", "https://allowed.test/"}, "hello from allowed.test"},
		{"curl over http", []string{"curl", "-sS", "http://allowed.test/"}, "hello from allowed.test"},
		{"curl elsewhere", []string{"curl", "-sS", "https://other.test/"}, ""},
		{"curl elsewhere over http", []string{"curl", "-sSf", "http://other.test/"}, ""},
		{"curl by another name", []string{"curl", "-sS", "--connect-to", "other.test:443:allowed.test:443", "https://other.test/"}, ""},
		{"curl by another host", []string{"curl", "-sSf", "-H", "Host: other.test", "http://allowed.test/"}, ""},
		{"curl around", []string{"curl", "-sS", "--noproxy", "*", "-k", "https://" + outside + "/"}, ""},
		{"git", []string{"sh", "-c", "git clone -q https://git.test/repo.git r && cat r/file"}, "in the repository"},
		{"npm", []string{"npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--registry=https://npm.test/", "--cafile=" + ca, "little"}, "added 1 package"},
		{"pip", []string{"python3", "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--root-user-action=ignore", "--target=.", "--index-url=https://pypi.test/simple/", "little"}, "Successfully installed little-1.0"},
	}
	for way, env := range map[string][]string{"proxy": proxied(), "names": nil} {
		for _, tt := range tests {
			t.Run(way+"/"+tt.name, func(t *testing.T) {
				for _, tool := range []string{tt.argv[0], strings.Fields(tt.name)[0]} {
					if _, err := exec.LookPath(tool); err != nil {
						t.Skip(err)
					}
				}
				if way == "proxy" && tt.name == "curl by another host" {
					t.Skip("the proxy rewrites the host")
				}
				said, err := n.inside(append(append([]string{}, trust...), env...), tt.argv...)
				if tt.says == "" && (err == nil || strings.Contains(said, "hello from other.test")) || tt.says != "" && (err != nil || !strings.Contains(said, tt.says)) {
					t.Errorf("%v: %s", err, said)
				}
			})
		}
	}
	var connected, refused bool
	for _, e := range n.rows() {
		connected = connected || e.Type == "Net.Connect" && strings.Contains(string(e.Payload), `"host":"allowed.test","port":443`)
		refused = refused || e.Type == "Net.Connect" && e.PID == n.pid && strings.Contains(string(e.Error), "may not connect to other.test")
	}
	if !connected || !refused {
		t.Errorf("connected %v, refused %v: %+v", connected, refused, n.rows())
	}
}

// site serves what git, npm and pip expect, and a greeting for other requests.
func site(t *testing.T, files string) http.Handler {
	t.Helper()
	if _, err := exec.LookPath("git"); err == nil {
		script := `cd "$1" && git init -q w && cd w && echo in the repository >file && git add file &&
git -c user.name=a -c user.email=a@b -c commit.gpgsign=false commit -qm x && git clone -q --bare . ../repo.git && cd ../repo.git && git update-server-info`
		cmd := exec.Command("sh", "-ec", script, "sh", files)
		cmd.Env = append(os.Environ(), "HOME="+files)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	packed := tarball(t)
	sum := sha512.Sum512(packed)
	served := http.FileServer(http.Dir(files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host == "git.test":
			served.ServeHTTP(w, r)
		case r.Host == "npm.test" && r.URL.Path == "/little":
			_, _ = fmt.Fprintf(w, `{"name":"little","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"little","version":"1.0.0","dist":{"tarball":"https://npm.test/little.tgz","integrity":"sha512-%s"}}}}`,
				base64.StdEncoding.EncodeToString(sum[:]))
		case r.Host == "npm.test" && r.URL.Path == "/little.tgz":
			_, _ = w.Write(packed)
		case r.Host == "pypi.test" && r.URL.Path == "/simple/little/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, `<a href="/little-1.0-py3-none-any.whl">little-1.0-py3-none-any.whl</a>`)
		case r.Host == "pypi.test" && strings.HasSuffix(r.URL.Path, ".whl"):
			_, _ = w.Write(wheel(t))
		default:
			_, _ = io.WriteString(w, "hello from "+r.Host)
		}
	})
}

// tarball returns a package for npm.
func tarball(t *testing.T) []byte {
	t.Helper()
	var buf bytes.Buffer
	zipped := gzip.NewWriter(&buf)
	files := tar.NewWriter(zipped)
	text := `{"name":"little","version":"1.0.0"}`
	testkit.Must(t, files.WriteHeader(&tar.Header{Name: "package/package.json", Mode: 0o644, Size: int64(len(text))}))
	_, err := io.WriteString(files, text)
	testkit.Must(t, err)
	testkit.Must(t, files.Close())
	testkit.Must(t, zipped.Close())
	return buf.Bytes()
}

// wheel returns a package for pip.
func wheel(t *testing.T) []byte {
	var buf bytes.Buffer
	files := zip.NewWriter(&buf)
	for name, text := range map[string]string{
		"little.py":                     "x = 1\n",
		"little-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: little\nVersion: 1.0\n",
		"little-1.0.dist-info/WHEEL":    "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"little-1.0.dist-info/RECORD":   "little.py,,\nlittle-1.0.dist-info/METADATA,,\nlittle-1.0.dist-info/WHEEL,,\nlittle-1.0.dist-info/RECORD,,\n",
	} {
		w, err := files.Create(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		if err != nil {
			t.Error(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Error(err)
	}
	return buf.Bytes()
}
