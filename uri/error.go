package uri

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Why a name means nothing. Each is the caller's fault: a 422 on the wire, but for ErrNoRoot, which is a 404.
var (
	ErrEmpty        = errors.New("the name is empty")
	ErrScheme       = errors.New("only os:///… and https://… can be named, or a path")
	ErrAboveRoot    = errors.New("the name leads above root")
	ErrEncoding     = errors.New("a percent-encoding is broken, or stands for what must be written plainly or not at all")
	ErrCharacter    = errors.New("a character cannot stand in a name")
	ErrEmptySegment = errors.New("a segment of the path is empty")
	ErrHost         = errors.New("the host is no DNS name and no IP address in canonical form")
	ErrUser         = errors.New("an address holds no user and no password")
	ErrTooLong      = errors.New("the name or a segment of it is too long")
	ErrOrigin       = errors.New("the origin has no letter and no digit in it")
	ErrTarget       = errors.New("root, or what is mounted, must be an absolute directory or an https: address")
	ErrMounted      = errors.New("two mounts have the same prefix")
	ErrNoRoot       = errors.New("no mount holds it, and there is no root")
)

// NameError is a name that means nothing.
type NameError struct {
	Name string // as it was given, cut short: of an address without a host that can be one, to its scheme
	Err  error  // one of the errors above
	Base bool   // it was given as what the other one stands beside
}

// Error returns the name and what is wrong with it.
func (e *NameError) Error() string { return fmt.Sprintf("resolve %q: %v", e.Name, e.Err) }

// Unwrap returns what is wrong.
func (e *NameError) Unwrap() error { return e.Err }

// refuse returns the error about name. It clips, since an answer has to fit a line, and since a password may stand where a host
// should.
func refuse(name string, err error) *NameError {
	const most = 128 // bytes
	if errors.Is(err, ErrScheme) || errors.Is(err, ErrHost) || errors.Is(err, ErrUser) {
		scheme, rest, _ := strings.Cut(name, ":")
		if strings.Contains(scheme, "/") {
			scheme, rest = "", name
		} else {
			scheme += ":"
		}
		name = scheme + rest[:len(rest)-len(strings.TrimLeft(rest, "/"))] + "…"
	}
	if len(name) > most {
		end := most
		for end > most-utf8.UTFMax && !utf8.RuneStart(name[end]) {
			end--
		}
		name = name[:end] + "…"
	}
	return &NameError{Name: name, Err: err}
}
