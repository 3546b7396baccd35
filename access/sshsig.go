package access

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/promptware-os/pwos/schema/fault"
)

const (
	magic   = "SSHSIG"
	version = 1

	armorBegin = "-----BEGIN SSH SIGNATURE-----\n"
	armorEnd   = "-----END SSH SIGNATURE-----"
	armorWidth = 70 // what ssh-keygen wraps at

	// MaxArmor bounds an armored signature in bytes. The key and the signature of an RSA key of 16,384 bits need 5,700.
	MaxArmor = 8192
)

// Signature is a detached signature in OpenSSH's SSHSIG form, version 1, of which nothing is verified yet.
//
// The form is read strictly, more so than OpenSSH does: nothing before, behind or between what has to be there, no reserved
// bytes, one way to write each value. So a signature is known by its bytes, and what a verifier sees is all that there is.
type Signature struct {
	Key       PublicKey // that it says has signed
	Namespace string
	Hash      string // sha256 or sha512
	raw       *ssh.Signature
}

// malformed is the error of a signature that is not in its form.
func malformed(problem string) *fault.Fault {
	return fault.AuthMalformed.New("the signature %s: send what \"ssh-keygen -Y sign -n %s\" writes", problem, Namespace)
}

// ParseArmored reads a signature as ssh-keygen -Y sign writes it; the last line's end may be missing.
func ParseArmored(text string) (*Signature, error) {
	sig, err := parseArmored(text)
	if err != nil {
		return nil, err
	}
	return sig, nil
}

func parseArmored(text string) (*Signature, *fault.Fault) {
	if len(text) > MaxArmor {
		return nil, malformed("is too long")
	}
	body, begun := strings.CutPrefix(text, armorBegin)
	body, ended := strings.CutSuffix(strings.TrimSuffix(body, "\n"), "\n"+armorEnd)
	if !begun || !ended {
		return nil, malformed("is not armored")
	}
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		// A line of another width than the first is the last, so that line ends say nothing.
		if line == "" || len(line) != len(lines[0]) && (i != len(lines)-1 || len(line) > len(lines[0])) || strings.Contains(line, "\r") {
			return nil, malformed("is not armored in lines of one width")
		}
	}
	blob, err := base64.StdEncoding.Strict().DecodeString(strings.Join(lines, ""))
	if err != nil {
		return nil, malformed("is not in base64")
	}
	return parseSignature(blob)
}

// signatureForm is what follows the magic of a signature in its binary form.
type signatureForm struct {
	Version   uint32
	Key       []byte
	Namespace string
	Reserved  string
	Hash      string
	Raw       []byte
	Rest      []byte `ssh:"rest"`
}

// parseSignature reads a signature in its binary form.
func parseSignature(blob []byte) (*Signature, *fault.Fault) {
	rest, ok := bytes.CutPrefix(blob, []byte(magic))
	if !ok || len(rest) < 4 {
		return nil, malformed("does not begin as one")
	}
	if binary.BigEndian.Uint32(rest) != version {
		return nil, malformed("is of another version than 1")
	}
	var in signatureForm
	if ssh.Unmarshal(rest, &in) != nil {
		return nil, malformed("is cut short")
	}
	if len(in.Rest) > 0 || in.Reserved != "" {
		return nil, malformed("holds more than a signature")
	}
	key, err := parseKeyBlob(in.Key)
	if err != nil {
		return nil, err
	}
	s := &Signature{Key: key, Namespace: in.Namespace, Hash: in.Hash}
	if s.Namespace == "" {
		return nil, fault.AuthNamespace.New("the signature has no namespace: sign with \"ssh-keygen -Y sign -n %s\"", Namespace).With("key", key.Fingerprint())
	}
	if s.Hash != "sha256" && s.Hash != "sha512" {
		return nil, fault.AuthHash.New("the signature's hash is not accepted: sign with sha256 or sha512").With("key", key.Fingerprint())
	}
	if s.raw, err = parseRaw(key, in.Raw); err != nil {
		return nil, err.With("key", key.Fingerprint())
	}
	return s, nil
}

// parseRaw reads the signature proper, as an ssh-agent returns it, and checks that its algorithm and its size are the key's.
func parseRaw(key PublicKey, blob []byte) (*ssh.Signature, *fault.Fault) {
	raw := new(ssh.Signature)
	if ssh.Unmarshal(blob, raw) != nil {
		return nil, malformed("is cut short")
	}
	extra := 0 // of a security key: its flags, one byte, and its counter, four
	if key.typ == ssh.KeyAlgoSKED25519 {
		extra = 5
	}
	if len(raw.Rest) != extra || len(raw.Blob) == 0 {
		return nil, malformed("holds more than a signature, or less")
	}
	return raw, checkAlgorithm(key, raw.Format)
}

// checkAlgorithm refuses a signature algorithm that is not the key's, SHA-1 with RSA above all.
func checkAlgorithm(key PublicKey, algorithm string) *fault.Fault {
	switch {
	case key.typ != ssh.KeyAlgoRSA && algorithm == key.typ,
		key.typ == ssh.KeyAlgoRSA && (algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512):
		return nil
	case key.typ == ssh.KeyAlgoRSA:
		return fault.AuthHash.New("the RSA signature has to be rsa-sha2-256 or rsa-sha2-512: update the program that signs")
	}
	return fault.AuthHash.New("the signature is of type %s, the key of type %s", printable(algorithm, 64), key.typ)
}

// marshal returns the signature in its binary form.
func (s *Signature) marshal() []byte {
	return append([]byte(magic), ssh.Marshal(&signatureForm{
		Version: version, Key: []byte(s.Key.blob), Namespace: s.Namespace, Hash: s.Hash, Raw: ssh.Marshal(s.raw),
	})...)
}

// Armor returns the signature as ssh-keygen -Y sign writes it.
func (s *Signature) Armor() string {
	text := base64.StdEncoding.EncodeToString(s.marshal())
	var b strings.Builder
	b.WriteString(armorBegin)
	for len(text) > armorWidth {
		b.WriteString(text[:armorWidth])
		b.WriteByte('\n')
		text = text[armorWidth:]
	}
	b.WriteString(text + "\n" + armorEnd + "\n")
	return b.String()
}

// signedData is what the key signs: never the message itself, always a text that no other protocol over SSH keys has.
func signedData(namespace, hash string, message []byte) []byte {
	var sum []byte
	switch hash {
	case "sha256":
		h := sha256.Sum256(message)
		sum = h[:]
	default: // parseSignature let nothing else pass
		h := sha512.Sum512(message)
		sum = h[:]
	}
	return append([]byte(magic), ssh.Marshal(struct {
		Namespace, Reserved, Hash string
		Sum                       []byte
	}{namespace, "", hash, sum})...)
}
