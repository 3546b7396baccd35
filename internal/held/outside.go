package held

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// obeyed is what programs of the user run, or obey, as soon as they meet it, by the pattern of its name and, where that matters, the
// directory that it is in: direnv and version managers, editors, agents, and pwos itself.
var obeyed = [...]struct{ in, name string }{
	{"", ".envrc"},
	{".vscode", "tasks.json"},
	{".vscode", "settings.json"},
	{"", ".idea"},
	{"", ".mcp.json"},
	{".claude", "settings*.json"},
	{"", ".codex"},
	{".gemini", "settings.json"},
	{".qwen", "settings*.json"},
	{"", "opencode.json*"},
	{".opencode", "plugin*"},
	{".pi", "settings.json"},
	{".pi", "extensions"},
	{"", ".pwos.toml"},
	{"", ".exrc"}, // these of Vim and Neovim, with the option exrc
	{"", ".vimrc"},
	{"", ".nvimrc"},
	{"", ".nvim.lua"},
}

// Outside returns the shortest beginning of a path at which there is something that programs outside run, "" if there is none: .idea of
// .idea/a.xml. A directory that has such files counts if it is none, but a symbolic link, which may lead to others.
func Outside(path string, isDir bool) string {
	parts := strings.Split(path, "/")
	for i, name := range parts {
		last, in := i == len(parts)-1, ""
		if i > 0 {
			in = parts[i-1]
		}
		if isOutside(in, name) || last && !isDir && hasOutside(name) {
			return strings.Join(parts[:i+1], "/")
		}
	}
	return ""
}

func isOutside(in, name string) bool {
	name = strings.ToLower(name) // some file systems do not tell cases apart
	for _, of := range obeyed {
		matched, err := filepath.Match(of.name, name)
		if err == nil && matched && (of.in == "" || strings.EqualFold(of.in, in)) {
			return true
		}
	}
	return false
}

// hasOutside reports whether files in a directory of that name are such files.
func hasOutside(name string) bool {
	for _, of := range obeyed {
		if of.in != "" && strings.EqualFold(of.in, name) {
			return true
		}
	}
	return false
}

// markedNames are those of what runs or is obeyed outside once a person asks for it, in small letters.
var markedNames = [...]string{
	"makefile", "gnumakefile", "justfile", "taskfile.yml", "taskfile.yaml", "package.json", "claude.md", "claude.local.md", "agents.md",
	"agents.override.md", "gemini.md", "qwen.md", ".cursorrules", ".windsurfrules", "copilot-instructions.md", ".git", ".gitmodules",
	".npmrc", ".yarnrc.yml", ".pnpmfile.cjs", "bunfig.toml", "mise.toml", ".mise.toml",
}

// Marked reports whether what has a path is no such file, but becomes one when a person builds the project, starts an agent in it, or
// uses git there. What a package manager has put into node_modules is not asked for by name.
func Marked(path string) bool {
	if strings.Contains("/"+path, "/node_modules/") {
		return false
	}
	return slices.Contains(markedNames[:], strings.ToLower(path[strings.LastIndexByte(path, '/')+1:]))
}

// links returns the files that programs outside run by a symbolic link at a path.
func links(path string) (list []string) {
	at, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil // it leads nowhere
	}
	if !hasOutside(filepath.Base(path)) {
		return []string{at}
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	for _, entry := range entries {
		if isOutside(filepath.Base(path), entry.Name()) {
			list = append(list, filepath.Join(at, entry.Name()))
		}
	}
	return list
}
