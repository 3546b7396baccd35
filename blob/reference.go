package blob

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"mime"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/promptware-os/pwos/schema"
)

const (
	folderPrefix = "o-"    // prefix of the name of an origin's directory; its hash follows
	newPrefix    = ".new-" // prefix of the name of a file that is being written
	maxName      = 255     // bytes, as in file systems
)

// folderOf returns the directory of an origin, "" for the kernel's own.
func (s *Store) folderOf(origin string) string {
	if origin == s.origin {
		return ""
	}
	sum := sha256.Sum256([]byte(origin))
	return folderPrefix + hex.EncodeToString(sum[:16])
}

func isFolder(name string) bool {
	rest, ok := strings.CutPrefix(name, folderPrefix)
	return ok && len(rest) == 32 && strings.Trim(rest, "0123456789abcdef") == ""
}

// pointer returns the reference to a blob. Each blob has exactly one: the absolute path below the store's directory as
// configured (in JSON, as BlobPointer.Append writes it).
func (s *Store) pointer(folder, name string) schema.BlobPointer {
	return schema.BlobPointer{Scheme: "file", Path: filepath.Join(s.dir, folder, name)}
}

// parse splits a reference of an origin into directory and file name. It uses only the text.
func (s *Store) parse(origin string, p schema.BlobPointer) (folder, name string, err error) {
	if p.Scheme != "file" || p.Authority != "" || p.Query != "" || p.Fragment != "" {
		return "", "", invalid("the reference must have the scheme file and a path, nothing else")
	}
	if p.Path != filepath.Clean(p.Path) || strings.ContainsRune(p.Path, 0) {
		return "", "", invalid("the reference's path must be absolute, without . and .. and doubled slashes")
	}
	rest, inside := strings.CutPrefix(p.Path, s.dir+"/")
	if !inside {
		return "", "", s.outside()
	}
	folder, name, nested := strings.Cut(rest, "/")
	if !nested {
		folder, name = "", rest
	}
	// A directory is not a blob, and callers must not learn whether an origin has one.
	if folder != s.folderOf(origin) || folder == "" && isFolder(name) || name[0] == '.' || len(name) > maxName || strings.Contains(name, "/") {
		return "", "", missing()
	}
	return folder, name, nil
}

// maxMediaType bounds a media type, in bytes.
const maxMediaType = 256

// Data decodes a reference with the scheme data, `[media type][;base64],data`, to at most most bytes. The default media
// type is text/plain;charset=US-ASCII. Every error is BlobInvalid or BlobTooLarge, and repeats no part of the reference.
func Data(p schema.BlobPointer, most int64) (mediaType string, data []byte, err error) {
	head, body, ok := strings.Cut(p.Path, ",")
	if p.Scheme != "data" || !ok || p.Authority != "" || p.Query != "" || p.Fragment != "" {
		return "", nil, invalid("the reference must have the scheme data and a path of the form [media type][;base64],data")
	}
	if mediaType, head, err = media(head); err != nil {
		return "", nil, err
	}
	// An escape has three bytes for one, base64 four for three, and both may be combined.
	if int64(len(body))/4 > most {
		return "", nil, tooLarge("what the reference contains", most)
	}
	text, uerr := url.PathUnescape(body)
	if uerr != nil {
		return "", nil, invalid("the reference's data has a %% without two hexadecimal digits after it")
	}
	data = []byte(text)
	if head == "base64" {
		if data, uerr = base64.StdEncoding.Strict().DecodeString(text); uerr != nil || strings.ContainsAny(text, "\r\n") {
			return "", nil, invalid("the reference's data is not base64: standard alphabet, with its padding, without line ends")
		}
	}
	if int64(len(data)) > most {
		return "", nil, tooLarge("what the reference contains", most)
	}
	return mediaType, data, nil
}

// media splits the text before the comma into the media type and the encoding.
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
