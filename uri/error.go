package uri

import (
	"strings"

	"github.com/promptware-os/pwos/internal/clip"
	"github.com/promptware-os/pwos/schema/fault"
)

// reason says why a name is invalid.
type reason string

// Error returns the reason.
func (r reason) Error() string { return string(r) }

const (
	errEmpty        reason = "the name is empty"
	errScheme       reason = "only os:///… and https://… can be named, or a path"
	errAboveRoot    reason = "the name leads above root"
	errEncoding     reason = "a percent-encoding is broken, or stands for what must be written plainly or not at all"
	errCharacter    reason = "a character cannot stand in a name"
	errEmptySegment reason = "a segment of the path is empty"
	errHost         reason = "the host is no DNS name and no IP address in canonical form"
	errUser         reason = "an address holds no user and no password"
	errTooLong      reason = "the name or a segment of it is too long"
	errOrigin       reason = "the origin has no letter and no digit in it"
	errTarget       reason = "root, or what is mounted, must be an absolute directory or an https: address"
	errMounted      reason = "two mounts have the same prefix"
	errNoRoot       reason = "no mount holds it, and there is no root"
)

// refuseMember returns the fault of a name that is a member of a request's data.
func refuseMember(member, name string, why error) *fault.Fault {
	f := refuse(name, why)
	if f.ID == fault.NameInvalid {
		f.Message = "Invalid input: " + member + " " + f.Message
		f.Field = member
	}
	return f
}

// refuse returns the fault of a name: NameNotFound if no root or mount contains it, otherwise NameInvalid.
func refuse(name string, why error) *fault.Fault {
	if why == errNoRoot { //nolint:errorlint // a constant, never wrapped
		return fault.NameNotFound.New("no mount holds %s and there is no root", quoted(name, why)).
			WithFix("start the kernel with --root, or mount what holds it").With("uri", quoted(name, why))
	}
	return fault.NameInvalid.New("%q cannot be resolved: %v", quoted(name, why), why).With("uri", quoted(name, why))
}

// quoted shortens a name, since an answer must fit a line. Of an address without a valid host it keeps only the scheme,
// since the rest may be a password.
func quoted(name string, why error) string {
	const most = 128                                          // bytes
	if why == errScheme || why == errHost || why == errUser { //nolint:errorlint // constants, never wrapped
		scheme, rest, _ := strings.Cut(name, ":")
		if strings.Contains(scheme, "/") {
			scheme, rest = "", name
		} else {
			scheme += ":"
		}
		name = scheme + rest[:len(rest)-len(strings.TrimLeft(rest, "/"))] + "…"
	}
	return clip.Text(name, most)
}
