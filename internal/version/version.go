// Package version says which build of pwos a program is.
package version

import "runtime/debug"

// stamp is the version that a build outside of a module's release names:
//
//	go build -ldflags "-X github.com/promptware-os/pwos/internal/version.stamp=v1.2.3" ./cmd/...
var stamp string

// Build returns the version that the build was stamped with, or else that of the module, as the go command has recorded it;
// "(devel)" if there is neither.
func Build() string {
	if stamp != "" {
		return stamp
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
