package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/promptware-os/pwos/uri"
)

// noOrigin is the origin if there is neither an origin nor a root in the settings.
const noOrigin = "https://pwos.local/"

// Principal returns the normalized origin (ABI 6.2): that of the settings, otherwise their root, otherwise noOrigin. The
// error is an *Error.
func (c *Config) Principal() (string, error) {
	if c.Origin == "" && c.Root == "" {
		return noOrigin, nil
	}
	origin, err := uri.Origin(c.Origin, c.Root)
	if err != nil {
		return "", &Error{Key: "origin", Text: err.Error()}
	}
	return origin, nil
}

// Space returns the name space. The error is an *Error.
func (c *Config) Space() (*uri.Space, error) {
	if c.Root != "" && !filepath.IsAbs(c.Root) && !strings.HasPrefix(strings.ToLower(c.Root), "https:") {
		return nil, &Error{Key: "root", Text: fmt.Sprintf("%q must be an absolute path or an https: address", c.Root)}
	}
	if _, err := uri.New(c.Root); err != nil {
		return nil, &Error{Key: "root", Text: err.Error()}
	}
	var list []uri.Mount
	for _, prefix := range slices.Sorted(maps.Keys(c.Mounts)) {
		list = append(list, uri.Mount{Prefix: prefix, Target: c.Mounts[prefix]})
		if _, err := uri.New("", list...); err != nil {
			return nil, &Error{Key: mounts + prefix, Text: err.Error()}
		}
	}
	space, err := uri.New(c.Root, list...)
	if err != nil {
		return nil, &Error{Key: "mounts", Text: err.Error()}
	}
	if c.Init != "" {
		if _, err := space.ResolveMember("init", c.Init, ""); err != nil {
			return nil, &Error{Key: "init", Text: err.Error()}
		}
	}
	return space, nil
}

// placeFaults reports faults of origin, root, mounts and init.
func (c *Config) placeFaults(refuse func(key, format string, args ...any)) {
	_, badOrigin := c.Principal()
	_, badSpace := c.Space()
	for _, err := range []error{badOrigin, badSpace} {
		if wrong := (*Error)(nil); errors.As(err, &wrong) {
			refuse(wrong.Key, "%s", wrong.Text)
		}
	}
}
