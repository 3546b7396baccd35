package access_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/schema"
)

// forgery is an SSHSIG in which each part can be set to a wrong value.
type forgery struct {
	magic     string
	version   uint32
	key       string // in wire form
	namespace string
	reserved  string
	hash      string
	raw       string // the signature proper, in wire form
	trailing  string
}

// blobOf returns a forgery that is well formed and names key, without a signature.
func blobOf(key access.PublicKey) *forgery {
	raw := ssh.Marshal(&ssh.Signature{Format: key.Type(), Blob: make([]byte, 64)})
	return &forgery{magic: "SSHSIG", version: 1, key: wireKey(key), namespace: access.Namespace, hash: "sha512", raw: string(raw)}
}

func wireKey(key access.PublicKey) string {
	raw, err := base64.StdEncoding.DecodeString(strings.Fields(key.String())[1])
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (f *forgery) bytes() []byte {
	b := ssh.Marshal(struct {
		Version                               uint32
		Key, Namespace, Reserved, Hash, Signs string
	}{f.version, f.key, f.namespace, f.reserved, f.hash, f.raw})
	return []byte(f.magic + string(b) + f.trailing)
}

// signed returns what the key of the forgery would sign for message.
func (f *forgery) signed(message []byte) []byte {
	sum256, sum512 := sha256.Sum256(message), sha512.Sum512(message)
	sum := sum512[:]
	if f.hash == "sha256" {
		sum = sum256[:]
	}
	return append([]byte("SSHSIG"), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{f.namespace, f.reserved, f.hash, sum})...)
}

func (f *forgery) armor() string { return armored(f.bytes()) }

func armored(blob []byte) string {
	text := base64.StdEncoding.EncodeToString(blob)
	var b strings.Builder
	b.WriteString("-----BEGIN SSH SIGNATURE-----\n")
	for len(text) > 70 {
		b.WriteString(text[:70] + "\n")
		text = text[70:]
	}
	b.WriteString(text + "\n-----END SSH SIGNATURE-----\n")
	return b.String()
}

// wire is a signature as an ssh-agent returns it.
func wire(sig *ssh.Signature) string { return string(ssh.Marshal(sig)) }

// rawOf signs data with the key in a file, without SSHSIG.
func rawOf(t testing.TB, path string, data []byte, algorithm string) string {
	t.Helper()
	key := must(ssh.ParsePrivateKey(must(os.ReadFile(path))(t)))(t)
	if algorithm == "" {
		return wire(must(key.Sign(rand.Reader, data))(t))
	}
	return wire(must(key.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, data, algorithm))(t))
}

// identity is the signer of a key file.
func identity(t testing.TB, path string) *access.Signer {
	t.Helper()
	found := must((&access.Identities{Identity: path}).Find(t.Context()))(t)
	return found.Signers[0]
}

func armorOf(t testing.TB, s *access.Signer, namespace string, text []byte) string {
	t.Helper()
	return must(s.Sign(t.Context(), namespace, text))(t).Armor()
}

// answerWith returns the data of an answer that signs text.
func answerWith(t testing.TB, s *access.Signer, namespace string, text []byte) []byte {
	t.Helper()
	return answerText(t, s.Key().String(), armorOf(t, s, namespace, text))
}

func answerText(t testing.TB, key, armor string) []byte {
	t.Helper()
	return jsonOf(t, map[string]string{"public_key": key, "signature": armor})
}

func jsonOf(t testing.TB, members map[string]string) []byte {
	t.Helper()
	return must(schema.Marshal(members))(t)
}

// offerOf parses the data of a challenge without the package's parser.
func offerOf(t testing.TB, c *access.Challenge) map[string]string {
	t.Helper()
	v, fault := schema.TypeOf[map[string]string]().Decode(c.Data())
	if fault != nil {
		t.Fatal(fault)
	}
	return *v.(*map[string]string)
}

// bindingOf returns what both ends of the world's socket bind c to.
func bindingOf(t testing.TB, c *access.Challenge) *access.Binding {
	t.Helper()
	o := offerOf(t, c)
	raw := must(base64.StdEncoding.DecodeString(o["challenge"]))(t)
	key, _, err := access.ParsePublicKey(o["host_key"])
	return &access.Binding{
		Challenge: [32]byte(raw), HostKey: must(key, err)(t),
		Channel: access.Local{Socket: socket, PID: pid, UID: uid}, Issued: c.Issued(),
	}
}

// securityKey is a FIDO key in software.
type securityKey struct {
	private     ed25519.PrivateKey
	application string
	flags       byte
	counter     uint32
}

func newSecurityKey(application string, flags byte) *securityKey {
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return &securityKey{private: private, application: application, flags: flags, counter: 7}
}

func (k *securityKey) public() access.PublicKey {
	blob := ssh.Marshal(struct {
		Type, Point, Application string
	}{ssh.KeyAlgoSKED25519, string(k.private.Public().(ed25519.PublicKey)), k.application})
	key, _, err := access.ParsePublicKey(ssh.KeyAlgoSKED25519 + " " + base64.StdEncoding.EncodeToString(blob))
	if err != nil {
		panic(err)
	}
	return key
}

// armor signs text as ssh-keygen -Y sign does with such a key.
func (k *securityKey) armor(text []byte) string {
	f := blobOf(k.public())
	app, sum := sha256.Sum256([]byte(k.application)), sha256.Sum256(f.signed(text))
	extra := ssh.Marshal(struct {
		Flags   byte
		Counter uint32
	}{k.flags, k.counter})
	data := append(append(app[:], extra...), sum[:]...)
	f.raw = wire(&ssh.Signature{Format: ssh.KeyAlgoSKED25519, Blob: ed25519.Sign(k.private, data), Rest: extra})
	return f.armor()
}
