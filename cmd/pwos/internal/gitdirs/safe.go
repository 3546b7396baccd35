package gitdirs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// The forms of what is taken over without a question. A name that could be a path or an address would stand for that in the user's
// commands, and an address of another form may run a program.
var (
	remoteName = pattern(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
	branchName = pattern(`^[A-Za-z0-9_][A-Za-z0-9_./+@-]*$`)
	address    = pattern(`^(https://(` + user + `@)?` + server + `(:[0-9]+)?(/` + rest + `)?|ssh://(` + user + `@)?` + server + `(:[0-9]+)?/` + rest + `|` +
		user + `@` + server + `:[A-Za-z0-9_.~/]` + rest + `)$`)
)

// pattern compiles a pattern when it is first used: most runs of pwos use none.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

const (
	user   = `[A-Za-z0-9_][A-Za-z0-9._-]*`
	server = `[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?`
	rest   = `[A-Za-z0-9._~/%+@,=-]*`
)

// known is what decides whether a change is safe.
type known struct {
	base, ours, real Settings
	common           string
	branches         map[string]bool // at the start; nil: they are not known
	users            func() Settings
}

// isSafe reports whether a change of a key is taken over without a question: a new remote, with its address and the usual fetch; the tracking of
// a branch that is new; the name and address of an author where none was. They send nothing elsewhere that the user sends. Whether the
// checkout is sparse is in the index too, which the agent has written, and its patterns.
func (k *known) isSafe(key string) bool {
	if sparse[key] && slices.Equal(k.base[key], k.real[key]) && len(k.ours[key]) == 1 && isBool(k.ours[key][0]) {
		return true
	}
	if k.base[key] != nil || k.real[key] != nil || len(k.ours[key]) != 1 {
		return false
	}
	section, name, last := split(key)
	switch section {
	case "extensions": // of the sparse checkout; nothing of the agent's is in the other file
		return key == "extensions.worktreeconfig" && k.ours[key][0] == "true"
	case "remote":
		return (last == "url" || last == "fetch") && k.isNewRemote(name)
	case "branch":
		return (last == "remote" || last == "merge") && k.isNewBranch(name)
	case "user":
		return name == "" && (last == "name" || last == "email") && !strings.ContainsFunc(k.ours[key][0], unicode.IsControl) && k.ours[key][0] != NoValue
	}
	return false
}

// sparse are the settings of a sparse checkout that are true or false.
var sparse = map[string]bool{"core.sparsecheckout": true, "core.sparsecheckoutcone": true, "index.sparse": true}

// isNewRemote reports whether there is such a remote since the agent, and nothing of the user's meant it before.
func (k *known) isNewRemote(name string) bool {
	url, fetch := k.ours["remote."+name+".url"], k.ours["remote."+name+".fetch"]
	if !remoteName().MatchString(name) || strings.Contains(name, "..") || len(url) != 1 || !address().MatchString(url[0]) ||
		!slices.Equal(fetch, []string{"+refs/heads/*:refs/remotes/" + name + "/*"}) {
		return false
	}
	// While a safe change is made, a part of the remote is there already: only with the same value.
	for key, values := range k.real {
		section, of, last := split(key)
		if section == "remote" && of == name && (last != "url" && last != "fetch" || !slices.Equal(values, k.ours[key])) {
			return false
		}
	}
	if name == "origin" && k.hasOther(name) { // without another rule, git pushes to that
		return false
	}
	for _, s := range []Settings{k.real, k.users()} {
		for key, values := range s {
			section, of, last := split(key)
			names := (section == "remote" || section == "checkout") && of == "" || section == "branch" && (last == "remote" || last == "pushremote")
			if names && slices.Contains(values, name) && !k.isNewBranchsKey(key) {
				return false
			}
		}
	}
	for key := range k.users() {
		if section, of, _ := split(key); section == "remote" && of == name {
			return false
		}
	}
	return true
}

// isNewBranchsKey reports whether a key is the tracking of a new branch, which was taken over before.
func (k *known) isNewBranchsKey(key string) bool {
	section, name, last := split(key)
	return section == "branch" && last == "remote" && k.base[key] == nil && slices.Equal(k.real[key], k.ours[key]) && k.branches != nil && !k.branches[name]
}

// hasOther reports whether there is another remote.
func (k *known) hasOther(name string) bool {
	for key := range k.real {
		if section, of, _ := split(key); section == "remote" && of != "" && of != name && k.base[key] != nil {
			return true
		}
	}
	for _, old := range []string{"remotes", "branches"} {
		if entries, err := os.ReadDir(filepath.Join(k.common, old)); err == nil && len(entries) > 0 {
			return true
		}
	}
	return false
}

// isNewBranch reports whether there is such a branch since the agent, and it tracks a branch of a remote that the user has, or will have.
func (k *known) isNewBranch(name string) bool {
	if k.branches == nil || k.branches[name] || !branchName().MatchString(name) {
		return false
	}
	for key, values := range k.real {
		section, of, last := split(key)
		if section == "branch" && of == name && (last != "remote" && last != "merge" || !slices.Equal(values, k.ours[key])) {
			return false
		}
	}
	remote, merge := k.ours["branch."+name+".remote"], k.ours["branch."+name+".merge"]
	if len(remote) != 1 || len(merge) != 1 {
		return false
	}
	branch, is := strings.CutPrefix(merge[0], "refs/heads/")
	if !is || !branchName().MatchString(branch) {
		return false
	}
	return remote[0] == "." || k.real["remote."+remote[0]+".url"] != nil && slices.Equal(k.real["remote."+remote[0]+".url"], k.ours["remote."+remote[0]+".url"]) || k.isNewRemote(remote[0])
}

// split splits a key: "remote.a.b.url" is remote, a.b, url.
func split(key string) (section, name, last string) {
	first, end := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
	if first < 0 {
		return key, "", ""
	}
	if first == end {
		return key[:first], "", key[end+1:]
	}
	return key[:first], key[first+1 : end], key[end+1:]
}

// Runs returns the settings that can make git run a program or a hook, or read another file of settings, quoted.
func (s Settings) runs() (keys []string) {
	for key, values := range s {
		if running().MatchString(key) || strings.HasPrefix(key, "alias.") && slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(strings.TrimSpace(v), "!") }) {
			if (key == "core.fsmonitor" || key == "extensions.worktreeconfig") && !slices.ContainsFunc(values, func(v string) bool { return !isBool(v) }) {
				continue
			}
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func isBool(text string) bool {
	return slices.Contains([]string{"", NoValue, "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(text))
}

// running matches the keys that name a program, or lead to a file that does.
var running = pattern(`^(core\.(fsmonitor|hookspath|pager|editor|sshcommand|askpass|gitproxy|alternaterefscommand|worktree)|include(if\..*)?\.path|` +
	`filter\..*\.(clean|smudge|process)|diff\.(external|.*\.(command|textconv))|merge\..*\.driver|(merge|diff)tool\..*\.(cmd|path)|` +
	`gpg\.(.*\.)?program|gpg\.ssh\.defaultkeycommand|credential\.(.*\.)?helper|sequence\.editor|pager\..*|man\..*\.(cmd|path)|browser\..*\.(cmd|path)|` +
	`uploadpack\.packobjectshook|remote\..*\.(uploadpack|receivepack|vcs|proxy)|http\.(.*\.)?proxy|submodule\..*\.update|interactive\.difffilter|` +
	`trailer\..*\.(cmd|command)|sendemail\..*|protocol\..*|url\..*|tar\..*\.command|help\.browser|instaweb\..*|init\.templatedir|receive\..*|hook\..*\.command|extensions\..*)$`)
