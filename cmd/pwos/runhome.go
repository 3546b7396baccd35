package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/internal/agenthome"
	"github.com/promptware-os/pwos/internal/osuser"
	"github.com/promptware-os/pwos/profile"
	"github.com/promptware-os/pwos/schema"
)

// passed reports whether a program gets a variable of the caller.
func passed(name string) bool {
	return name != "HOME" && name != "TMPDIR" && name != "PWOS_RUNTIME_DIR" && schema.PlainVariable(name)
}

// longestVariable is the most that the kernel accepts, in characters.
const longestVariable = 8192

// pass adds variables of the caller to those of a program, which override them. It returns those that the kernel would not accept.
func pass(program *schema.Program, environ []string) (left []string) {
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		_, given := program.Env[name]
		if _, sealed := program.Secrets[name]; given || sealed || !passed(name) {
			continue
		}
		if len(value) > longestVariable || !utf8.ValidString(value) {
			left = append(left, name)
			continue
		}
		if program.Env == nil {
			program.Env = make(map[string]string)
		}
		program.Env[name] = value
	}
	return left
}

// namedHome returns the directory that the settings name as the program's home; "" if they name none.
func namedHome(p *profile.Profile, here profile.Here) (string, error) {
	if p.Home == "" {
		return "", nil
	}
	home, err := here.Path(p.Home)
	if err != nil {
		return "", err
	}
	if info, err := os.Stat(home); err != nil {
		return "", fmt.Errorf("find home directory: %w", err)
	} else if !info.IsDir() {
		return "", fmt.Errorf("--home %s is not a directory", home)
	}
	return home, nil
}

// homes returns the store of the homes of agents that run as the job's user.
func (j *job) homes() (agenthome.Store, error) {
	homes, err := agentHomes()
	if j.as.other != nil {
		homes = homes.Of(j.as.other.UID)
	}
	return homes, err
}

// agentHomes returns the store of the homes of agents.
func agentHomes() (agenthome.Store, error) {
	state, err := cli.StateDir()
	if err == nil {
		state, err = filepath.Abs(state)
	}
	return agenthome.Store(filepath.Join(state, "homes")), err
}

// giveHome gives the program its home, with the files for a home there, of which programs may be executed, and returns where it is. nil
// files are none.
func (j *job) giveHome(ctx context.Context, files func(home string) (map[string]string, error), programs ...string) (path string, err error) {
	open := agenthome.At
	at := j.home
	if at == "" {
		homes, err := j.homes()
		if err != nil {
			return "", err
		}
		open, at = homes.Open, j.input.ChildAgentID // a number that makes it another name is added later
		if strings.Contains(at, "/") {
			return "", fmt.Errorf("--name %q must not contain a slash: it separates an agent's name from its child's", at)
		}
	}
	home, err := open(at)
	if err != nil {
		return "", err
	}
	defer cli.CloseInto(&err, home)
	program := &j.input.Program
	if program.Env == nil {
		program.Env = make(map[string]string)
	}
	program.Env["HOME"] = home.Path
	writes, pnpm := []string{home.Path}, filepath.Join(home.Path, ".local/share/pnpm/store")
	if j.profile.Cache {
		dir, err := j.shareCaches()
		if err != nil {
			return "", err
		}
		writes, pnpm = append(writes, dir), filepath.Join(dir, "pnpm")
	}
	want := make(map[string]string)
	if j.home == "" {
		safe := ""
		var search sync.WaitGroup // beside git
		search.Go(func() { safe = safeDirectories(program) })
		want[".gitconfig"] = gitSettings(ctx, gitKeys, j.as.other) + j.signing
		search.Wait()
		want[".gitconfig"] += safe
		// A file in the home, a mount of its own, cannot be linked into the project; without a setting, pnpm's store would be in the project.
		want[".config/pnpm/config.yaml"] = fmt.Sprintf("storeDir: %q\n", pnpm)
		want[".config/pnpm/rc"] = "store-dir=" + pnpm + "\n" // before version 11
	}
	if files != nil {
		more, err := files(home.Path)
		if err != nil {
			return "", err
		}
		maps.Copy(want, more)
	}
	if err := home.Prepare(want, programs...); err != nil {
		return "", err
	}
	if insideAgent() && j.home == "" { // the kernel renews homes of its own store only
		if err := agenthome.Store(filepath.Dir(home.Path)).Renew(home.Path, program.Env["PATH"]); err != nil {
			return "", err
		}
	}
	if program.Sandbox.Named() == "off" {
		return home.Path, nil
	}
	s := new(schema.Sandbox)
	if program.Sandbox != nil {
		*s = *program.Sandbox
	}
	s.Write = append(s.Write[:len(s.Write):len(s.Write)], writes...)
	program.Sandbox = s
	return home.Path, nil
}

// gitKeys are the settings of git that an agent has from its user: who they are, and what decides how a repository looks. None of them
// names a program but that of LFS, a file or an address, or signs: see sign.
const gitKeys = `^(user\.(name|email)|init\.defaultbranch|fetch\.(prune|prunetags)|push\.(default|autosetupremote|followtags)|` +
	`merge\.(conflictstyle|ff|renames|stat|autostash)|branch\.(sort|autosetupmerge|autosetuprebase)|tag\.sort|log\.(date|decorate|abbrevcommit)|` +
	`(pull|rebase|rerere|advice|status|column)\.[a-z]+|color\.ui|commit\.verbose|core\.(autocrlf|eol|safecrlf|quotepath|whitespace|abbrev|ignorecase|precomposeunicode)|` +
	`diff\.(algorithm|renames|colormoved|mnemonicprefix|noprefix|submodule)|submodule\.recurse|filter\.lfs\.(clean|smudge|process|required)|versionsort\.suffix)$`

// gitSettings returns a configuration of git with those of a user's settings whose keys match, and nothing else of theirs. nil, and another
// user that has none of them, means this process's user.
func gitSettings(ctx context.Context, keys string, of *osuser.User) string {
	if of != nil && of.Home != "" && !hasGitSettings(gitFiles(of.Home, "")) {
		of = nil
	}
	if of == nil && !hasGitSettings(ownGitFiles()) {
		return ""
	}
	cmd := exec.CommandContext(ctx, "git", "config", "--global", "--includes", "--null", "--get-regexp", keys)
	if of != nil && of.Home != "" { // as that user, since the files that it includes are the user's choice
		cmd.Dir, cmd.Env = "/", []string{"PATH=" + os.Getenv("PATH"), "HOME=" + of.Home}
		cmd.SysProcAttr = as(of)
	}
	out, err := cmd.Output()
	if err != nil && of != nil {
		return gitSettings(ctx, keys, nil)
	}
	if err != nil { // there is no git here, or the user has none of them
		return ""
	}
	var b strings.Builder
	for setting := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		key, value, given := strings.Cut(setting, "\n")
		section, name := key[:strings.IndexByte(key, '.')], key[strings.LastIndexByte(key, '.')+1:]
		if between := key[len(section) : len(key)-len(name)]; between != "." {
			section += fmt.Sprintf(" %q", strings.Trim(between, "."))
		}
		fmt.Fprintf(&b, "[%s]\n\t%s", section, name)
		if given {
			value = strings.Map(func(r rune) rune {
				if unicode.IsControl(r) {
					return -1
				}
				return r
			}, value)
			fmt.Fprintf(&b, " = \"%s\"", strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// ownGitFiles returns where this process's user has settings for all repositories.
func ownGitFiles() []string {
	if file, given := os.LookupEnv("GIT_CONFIG_GLOBAL"); given {
		return []string{file}
	}
	return gitFiles(os.Getenv("HOME"), os.Getenv("XDG_CONFIG_HOME"))
}

// gitFiles returns where git looks for them. config is the directory of configurations; "": the usual one.
func gitFiles(home, config string) []string {
	return []string{filepath.Join(home, ".gitconfig"), filepath.Join(cmp.Or(config, filepath.Join(home, ".config")), "git", "config")}
}

// hasGitSettings reports whether git may find one of the files: a start without them does not wait for git.
func hasGitSettings(files []string) bool {
	return slices.ContainsFunc(files, func(file string) bool {
		_, err := os.Stat(file)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
