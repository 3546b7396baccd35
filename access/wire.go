package access

import (
	"encoding/base64"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// What the frames of a prologue carry as data (PROTOCOL 4).
type (
	offerData struct {
		Scheme        string `json:"scheme" enum:"none signature"`
		Challenge     string `json:"challenge,omitzero" maxlen:"64"`
		HostKey       string `json:"host_key,omitzero" maxlen:"6144"`
		HostSignature string `json:"host_signature,omitzero" maxlen:"8192"`
	}
	answerData struct {
		PublicKey string `json:"public_key" maxlen:"6400"`
		Signature string `json:"signature" maxlen:"8192"`
	}
)

const (
	schemeNone      = "none"
	schemeSignature = "signature"

	// maxFrameData bounds the data of either frame in bytes, whatever a line may hold.
	maxFrameData = 24 << 10
)

// decodeData reads a frame's data strictly: no member twice, none unknown.
func decodeData[T any](data []byte) (*T, *fault.Fault) {
	if len(data) > maxFrameData || !schema.Valid(data) {
		return nil, fault.WireInvalidJSON.New("it is too long or no JSON")
	}
	v, failure := schema.TypeOf[T]().Decode(data)
	if failure != nil {
		return nil, failure
	}
	return v.(*T), nil
}

// parseOffer reads what a daemon offers. The challenge and the host key are taken in the one form that they have, so
// that what is bound is what was sent.
func parseOffer(data []byte) (o *offerData, b *Binding, proof *Signature, err error) {
	o, failure := decodeData[offerData](data)
	if failure != nil {
		return nil, nil, nil, fault.AuthMalformed.New("the daemon's offer cannot be read: is it a pwos daemon of the same version?").Wrap(failure)
	}
	if o.Scheme == schemeNone {
		if *o != (offerData{Scheme: schemeNone}) {
			return nil, nil, nil, fault.AuthMalformed.New("the daemon asks for nothing, with a challenge: it is no pwos daemon")
		}
		return o, nil, nil, nil
	}
	b = &Binding{}
	raw, decodeErr := base64.StdEncoding.Strict().DecodeString(o.Challenge)
	if decodeErr != nil || len(raw) != ChallengeSize || base64.StdEncoding.EncodeToString(raw) != o.Challenge {
		return nil, nil, nil, fault.AuthMalformed.New("the daemon's challenge is not %d bytes in base64: nothing was signed", ChallengeSize)
	}
	b.Challenge = [ChallengeSize]byte(raw)
	key, _, keyFault := parseKeyLine(o.HostKey)
	if keyFault != nil || key.String() != o.HostKey {
		return nil, nil, nil, fault.AuthHost.New("the daemon's host key cannot be read: nothing was signed").Wrap(asError(keyFault))
	}
	b.HostKey = key
	blob, decodeErr := base64.StdEncoding.Strict().DecodeString(o.HostSignature)
	if decodeErr != nil {
		return nil, nil, nil, fault.AuthHost.New("the daemon did not prove that it holds its host key: nothing was signed").With("key", key.Fingerprint())
	}
	proof, sigFault := parseSignature(blob)
	if sigFault != nil {
		return nil, nil, nil, fault.AuthHost.New("the daemon's proof of its host key cannot be read: nothing was signed").With("key", key.Fingerprint()).Wrap(sigFault)
	}
	return o, b, proof, nil
}

// parseAnswer reads what a client answers: the key that it names, and a signature that says to be by that key.
func parseAnswer(data []byte) (*Signature, *fault.Fault) {
	a, failure := decodeData[answerData](data)
	if failure != nil {
		return nil, fault.AuthMalformed.New("the answer's data has to be {\"public_key\":\"ssh-ed25519 …\",\"signature\":\"-----BEGIN SSH SIGNATURE-----…\"}").Wrap(failure)
	}
	key, _, err := parseKeyLine(a.PublicKey)
	if err != nil {
		return nil, err
	}
	sig, err := parseArmored(a.Signature)
	if err != nil {
		if err.Detail("key") == "" {
			err.With("key", key.Fingerprint())
		}
		return nil, err
	}
	if sig.Key != key {
		return nil, fault.AuthWrongKey.New("the signature is by the key %s, not by the one that was named: name the key that signs",
			sig.Key.Fingerprint()).With("key", key.Fingerprint())
	}
	return sig, nil
}

// marshalData writes a frame's data.
func marshalData(v any) []byte {
	data, err := schema.Marshal(v)
	if err != nil {
		panic("access: a struct of strings that is no JSON: " + err.Error())
	}
	return data
}

// asError is err as an error that is nil where err is.
func asError(err *fault.Fault) error {
	if err == nil {
		return nil
	}
	return err
}
