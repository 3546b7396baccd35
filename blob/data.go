package blob

import (
	"encoding/base64"
	"mime"
	"net/url"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

// maxMediaType bounds a media type, in bytes.
const maxMediaType = 256

// Data decodes a reference of the scheme data, `[media type][;base64],data`, to at most so many bytes. The media type is
// text/plain;charset=US-ASCII where it names none. Everything that is wrong with it is BlobInvalid, or BlobTooLarge; no error repeats it.
func Data(p schema.BlobPointer, most int64) (mediaType string, data []byte, err error) {
	head, body, ok := strings.Cut(p.Path, ",")
	if p.Scheme != "data" || !ok || p.Authority != "" || p.Query != "" || p.Fragment != "" {
		return "", nil, invalid("the reference must have the scheme data and a path of the form [media type][;base64],data")
	}
	if mediaType, head, err = media(head); err != nil {
		return "", nil, err
	}
	// An escape is three bytes for one, base64 four for three, and both may be there.
	if int64(len(body))/4 > most {
		return "", nil, tooLarge("what the reference holds", most)
	}
	text, uerr := url.PathUnescape(body)
	if uerr != nil {
		return "", nil, invalid("the reference's data has a %% that two hexadecimal digits do not follow")
	}
	data = []byte(text)
	if head == "base64" {
		if data, uerr = base64.StdEncoding.Strict().DecodeString(text); uerr != nil || strings.ContainsAny(text, "\r\n") {
			return "", nil, invalid("the reference's data is not base64: standard alphabet, with its padding, without line ends")
		}
	}
	if int64(len(data)) > most {
		return "", nil, tooLarge("what the reference holds", most)
	}
	return mediaType, data, nil
}

// media splits what stands before the comma into the media type and the encoding.
func media(head string) (mediaType, encoding string, err error) {
	if rest, ok := strings.CutSuffix(head, ";base64"); ok {
		head, encoding = rest, "base64"
	}
	switch {
	case head == "":
		return "text/plain;charset=US-ASCII", encoding, nil
	case head[0] == ';':
		head = "text/plain" + head
	}
	unescaped, err := url.PathUnescape(head)
	if err == nil {
		_, _, err = mime.ParseMediaType(unescaped)
	}
	if err != nil || len(head) > maxMediaType || !strings.Contains(head, "/") {
		return "", "", invalid("the reference's media type must be of the form type/subtype;parameter=value")
	}
	return unescaped, encoding, nil
}
