package agenthome

import (
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// startFiles are the names in a home that programs read or run by themselves at a start, with everything below them. A name may be a pattern.
func startFiles() []string {
	return []string{
		// shells
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc",
		".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".inputrc", ".config/fish", ".config/nushell", ".config/powershell", ".xonshrc", ".config/xonsh",
		".pam_environment", ".config/environment.d", ".config/direnv", ".direnvrc", ".config/starship.toml", ".bash_completion",
		".local/share/bash-completion", ".local/share/fish/vendor_conf.d", ".local/share/fish/vendor_functions.d", ".local/share/fish/vendor_completions.d",
		// version control, remote shells, transfers
		".gitconfig", ".config/git", ".config/gh/config.yml", ".config/husky", ".huskyrc", ".hgrc", ".config/hg", ".config/jj", ".jjconfig.toml", ".ssh/config", ".ssh/rc", ".ssh/environment",
		".curlrc", ".config/curlrc", ".wgetrc", ".gnupg/gpg.conf", ".gnupg/gpg-agent.conf", ".gnupg/dirmngr.conf",
		// editors, pagers, terminals, debuggers
		".vimrc", ".vim", ".gvimrc", ".exrc", ".config/nvim", ".config/vim", ".emacs", ".emacs.el", ".emacs.d/init.el", ".emacs.d/early-init.el", ".config/emacs", ".nanorc",
		".config/nano", ".local/share/nvim/site", ".config/helix", ".mailcap", ".config/bat", ".config/lazygit", ".lesskey", ".config/lesskey", ".tmux.conf", ".config/tmux", ".screenrc", ".gdbinit", ".config/gdb", ".lldbinit", ".pdbrc", ".psqlrc", ".sqliterc", ".my.cnf",
		// languages and package managers
		".npmrc", ".yarnrc", ".yarnrc.yml", ".config/pnpm", ".bunfig.toml", ".node_repl", ".config/pip", ".pip", ".pydistutils.cfg", ".pythonrc", ".pythonrc.py", ".config/uv",
		".local/lib/python*/site-packages/*.pth", ".local/lib/python*/site-packages/*customize.py", ".ipython/profile_default/startup", ".cargo/config", ".cargo/config.toml",
		".config/go", ".gemrc", ".irbrc", ".pryrc", ".bundle/config", ".gradle/init.gradle", ".gradle/init.d", ".gradle/gradle.properties", ".m2/settings.xml", ".mavenrc",
		".condarc", ".config/pypoetry/config.toml", ".jupyter", ".terraformrc", ".docker/cli-plugins", ".Rprofile", ".Renviron", ".config/composer", ".config/mise", ".asdfrc", ".default-*",
		// sessions
		".config/systemd", ".config/autostart",
		// hosts of agents
		".claude/settings.json", ".claude/settings.local.json", ".claude/hooks", ".claude/CLAUDE.md", ".claude/rules", ".claude/commands", ".claude/skills", ".claude/agents",
		".claude/output-styles", ".codex/AGENTS.md", ".codex/prompts", ".copilot/copilot-instructions.md", ".copilot/agents", ".gemini/GEMINI.md", ".gemini/commands",
		".agents/skills", ".codex/skills", ".copilot/mcp-config.json", ".gemini/extensions", ".pi/agent/extensions", ".pi/agent/settings.json", ".qwen/settings.json",
		".qwen/extensions", ".pi/agent/AGENTS.md", ".pi/agent/prompts", ".pi/agent/skills", ".qwen/QWEN.md", ".qwen/commands", ".qwen/skills", ".qwen/agents", ".codex/config.toml", ".codex/hooks.json", ".codex/hooks", ".gemini/settings.json",
		".gemini/hooks", ".config/opencode", ".cursor/hooks.json", ".cursor/hooks", ".cursor/mcp.json", ".copilot/config.json",
	}
}

// isReadAtStart reports whether a name is one that is renewed at each start.
func isReadAtStart(name string) bool {
	return slices.ContainsFunc(startFiles(), func(pattern string) bool {
		for at := name; at != "."; at = path.Dir(at) {
			if matched, err := path.Match(pattern, at); err == nil && matched {
				return true
			}
		}
		return false
	})
}

// readAtStart returns the names that are removed before a start: start files, and what is in the home of a search path.
func (h *Home) readAtStart(searchPath string) (names []string, err error) {
	for _, pattern := range startFiles() {
		if !strings.Contains(pattern, "*") {
			names = append(names, pattern)
			continue
		}
		if err := h.parents(pattern, false); err != nil { // as far as it is without a *
			return nil, err
		}
		matches, err := fs.Glob(h.root.FS(), pattern)
		if err != nil {
			return nil, fmt.Errorf("look for %s: %w", pattern, err)
		}
		names = append(names, matches...)
	}
	for _, dir := range filepath.SplitList(searchPath) {
		if rel, err := filepath.Rel(h.Path, dir); err == nil && rel != "." && filepath.IsLocal(rel) {
			names = append(names, filepath.ToSlash(rel))
		}
	}
	return names, nil
}
