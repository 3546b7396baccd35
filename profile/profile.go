// Package profile describes how an agent is run. A Profile has its grant, sandbox, limits, budget and program. It is made of a file, a
// command line, or a file that a command line overrides; all follow one table of settings.
package profile

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/promptware-os/pwos/schema"
)

// Profile describes how an agent is run. A zero member is a missing setting. The tags of the members are the table of settings: the key in
// a file and of --set, the flag of pwos run with what is special about it, what a value is for, and the values that there are.
type Profile struct {
	Name string // of the file; "": there is none

	Policy string `key:"policy" about:"rules that the kernel must have loaded" takes:"the name of a file beside the profile that ends in .cedar" match:"^([^./][^/]*\\.cedar)?$"`

	Sign bool `key:"sign" about:"let git sign as you do, with the keys of your ssh-agent: SSH_AUTH_SOCK, gpg.format ssh and user.signingkey"`

	Allow     []string           `key:"grant.allow" flag:"allow,shown,commas" about:"what it may call, as in cap grant, separated by commas" takes:"syscalls, at least one (Syscall.Ping adds no right)" min:"1"`
	Hosts     []string           `key:"grant.hosts" flag:"host,shown" about:"server that it may reach: a name, *.name, an address, or * for any name; a port may follow" takes:"servers"`
	Helpers   []string           `key:"grant.helpers" flag:"helper,commas" about:"agent host that it may start beside it, with a part of what it has itself" takes:"names of agent hosts"`
	Localhost []string           `key:"grant.localhost" flag:"localhost" about:"port of a service on this machine's loopback that it may reach as localhost" takes:"ports" match:"^[1-9][0-9]{0,4}$"`
	Host      bool               `key:"grant.host" about:"what the agent host that it runs needs: its own tools, its model and its login, by its preset"`
	HTTPPlain bool               `key:"grant.http_plain" flag:"http-plain" about:"also allow plain http:"`
	HTTPOpen  bool               `key:"grant.http_open" flag:"http-open" about:"open sealed header values for it"`
	Quotas    map[string]float64 `key:"grant.quotas" flag:"quota" about:"most units of a resource that it may hold at once, as resource=amount" form:"resource=amount"`
	TTL       time.Duration      `key:"grant.ttl" flag:"ttl" about:"how long its grant is valid, in ticks of a second (default: it does not expire)"`

	// A path is absolute, below ~/, or below the working directory: see Here.
	Level     string   `key:"sandbox.level" flag:"sandbox" about:"what this machine supports, only system files and what is named, or no confinement" enum:"default strict off"`
	Net       string   `key:"sandbox.net" flag:"net" about:"no network, through the kernel, or as the kernel's user (default kernel; none with strict, open with off)" enum:"none kernel open"`
	Read      []string `key:"sandbox.read" flag:"read,shown,path" about:"a path outside its directory that it may read" takes:"paths"`
	Write     []string `key:"sandbox.write" flag:"write,shown,path" about:"a path outside its directory that it may write" takes:"paths"`
	Hide      []string `key:"sandbox.hide" flag:"hide,shown,path" about:"a path that is hidden from it" takes:"paths"`
	Publish   []string `key:"sandbox.publish" flag:"publish,shown" about:"port of its own that can be reached on this machine's loopback, or two, as PORT:PORT: here, and inside" takes:"ports" match:"^[1-9][0-9]{0,4}(:[1-9][0-9]{0,4})?$"`
	Review    bool     `key:"sandbox.review" flag:"review,shown" about:"work on a copy of its directory, or of the repository that this is in: see pwos apply"`
	AllowGaps bool     `key:"sandbox.allow_gaps" flag:"allow-gaps" about:"run it even if this machine cannot hide the kernel's state and keys"`

	Limits schema.Limits      `key:"limits" flag:"limit" about:"cpu_seconds, wall_seconds, memory_bytes, open_files or processes, as name=number" form:"name=number"`
	Budget schema.BudgetGrant `key:"budget" flag:"budget,shown,commas" about:"most that it may use in total, such as calls=500,fetches=100,tokens=200000,usd=2,wall_seconds=60" form:"kind=amount"`

	Env     []string `key:"program.env" flag:"env,shown" about:"a variable, as NAME=value, NAME=vault/KEY for a secret, or NAME for its value here" takes:"variables, as NAME=value or NAME" match:"^[^=]"`
	Dir     string   `key:"program.dir" flag:"dir,path" about:"working directory, where it may write (default: the current one)" takes:"a path"`
	OwnDir  bool     `key:"program.own_dir" flag:"own-dir" about:"work in a new directory instead"`
	User    string   `key:"program.user" flag:"user" about:"user that it runs as, by name or number, under a kernel of root (default: user of [agents], else the owner of its directory)" takes:"a user"`
	Home    string   `key:"program.home" flag:"home,shown,path" about:"its HOME, where it may write (default: a permanent home of its name)" takes:"a path"`
	Cache   bool     `key:"program.cache" flag:"cache" about:"use the caches of npm, pip, cargo, go and others that agents with this setting share"`
	Restart string   `key:"program.restart" flag:"restart" about:"when to restart it (default never)" enum:"never on-failure always"`
	Channel string   `key:"program.channel" flag:"channel,shown" about:"its channel to the kernel: stdio or fd3 (default fd3)" enum:"stdio fd3"`
	Preset  string   `key:"program.preset" flag:"preset" about:"setup for an agent host (default: by the name of the program)" takes:"the name of a host, none, or a file that declares one"`

	// Retired: the steps of every agent are kept.
	Snapshot      bool     `key:"snapshot.take" flag:"snapshot,retired" about:"has no effect any more"`
	SnapshotLimit *int64   `key:"snapshot.limit" flag:"snapshot-limit,retired" about:"has no effect any more" min:"1"`
	SnapshotSkip  []string `key:"snapshot.skip" flag:"snapshot-skip,retired" about:"has no effect any more" takes:"names, or paths with a slash"`
}

// shipped are the profiles that are part of the program.
//
//go:embed shipped/*.toml
var shipped embed.FS

// Read reads the profile with a name from the directory, or a shipped one. Its errors mean wrong usage.
func Read(dir, name string) (*Profile, error) {
	at, text, err := Text(dir, name)
	if err != nil {
		return nil, err
	}
	p, err := Parse(at, text)
	if err == nil {
		p.Name = name
	}
	return p, err
}

// Text returns the text of the profile with a name, and its place: a file in the directory, or NAME.toml for a shipped one. Its errors mean
// wrong usage.
func Text(dir, name string) (at string, text []byte, err error) {
	if !IsName(name) {
		return "", nil, fmt.Errorf("--profile takes the name of a profile, not %q: %s", name, strings.Join(Names(dir), ", "))
	}
	at = filepath.Join(dir, name+".toml")
	text, err = os.ReadFile(at)
	if errors.Is(err, fs.ErrNotExist) {
		at = name + ".toml"
		if text, err = shipped.ReadFile("shipped/" + at); errors.Is(err, fs.ErrNotExist) {
			return "", nil, fmt.Errorf("there is no profile %q: the profiles are %s; others can be added in %s", name, strings.Join(Names(dir), ", "), dir)
		}
	}
	if err != nil {
		return "", nil, fmt.Errorf("read profile: %w", err)
	}
	return at, text, nil
}

// Parse returns the profile of a text. at is the text's place, which errors name.
func Parse(at string, text []byte) (*Profile, error) {
	p := new(Profile)
	if line, err := p.decode(text); err != nil {
		return nil, fmt.Errorf("profile %s:%d: %w", at, line, err)
	}
	return p, nil
}

// maxName bounds a profile's name in bytes, since the names of its rules begin with it.
const maxName = 100

// IsName reports whether a text is a valid name of a profile.
func IsName(name string) bool {
	return name != "" && len(name) <= maxName && !strings.ContainsAny(name, "/\\") && !strings.HasPrefix(name, ".") &&
		!strings.ContainsFunc(name, unicode.IsControl)
}

// Names returns the names of all profiles, in the directory and shipped, sorted.
func Names(dir string) []string {
	all := make(map[string]bool)
	note := func(in fs.FS) {
		paths, err := fs.Glob(in, "*.toml")
		if err != nil { // the pattern is invalid
			return
		}
		for _, path := range paths {
			if !strings.HasPrefix(path, ".") {
				all[strings.TrimSuffix(path, ".toml")] = true
			}
		}
	}
	if inside, err := fs.Sub(shipped, "shipped"); err == nil {
		note(inside)
	}
	if dir != "" {
		note(os.DirFS(dir))
	}
	return slices.Sorted(maps.Keys(all))
}
