package held

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keyNames are patterns for the names of files that have keys or credentials.
var keyNames = [...]string{
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx",
	".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials", "*.tfstate", "*.tfvars", "service-account*.json",
}

// secretWords are what the names of files of settings say that have secrets, and settingsEnds how such names end.
var (
	secretWords  = [...]string{"secret", "credential", "password", "passwd", "token", "apikey", "api_key", "api-key"}
	settingsEnds = [...]string{"", ".json", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".txt", ".env", ".properties", ".xml"}
)

// LooksSecret reports whether a file of that name usually has secrets.
func LooksSecret(name string) bool {
	if Named(name) {
		return true
	}
	name = strings.ToLower(name)
	if name == "cacert.pem" || strings.HasSuffix(name, ".pub") { // certificates of authorities, which programs bring along
		return false
	}
	if slices.ContainsFunc(keyNames[:], func(pattern string) bool {
		matched, err := filepath.Match(pattern, name)
		return matched && err == nil
	}) {
		return true
	}
	return slices.Contains(settingsEnds[:], filepath.Ext(name)) &&
		slices.ContainsFunc(secretWords[:], func(word string) bool { return strings.Contains(name, word) })
}

// Secrets searches directories for at most so many files that look secret, level by level, without following links, and not in what
// skip says. It stops at 20,000 directories, or when ctx ends.
func Secrets(ctx context.Context, dirs []string, many int, skip func(path string) bool) (found []string) {
	level, searched := slices.Clone(dirs), 0
	for depth := 0; depth <= Depth && len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			if searched++; searched > most || ctx.Err() != nil || len(found) >= many {
				return found
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue // an agent cannot list it either
			}
			for _, entry := range entries {
				path := filepath.Join(dir, entry.Name())
				switch {
				case skip(path):
				case entry.IsDir() && !slices.Contains(skipped[:], entry.Name()):
					next = append(next, path)
				case entry.Type()&fs.ModeType == 0 && LooksSecret(entry.Name()) && len(found) < many:
					found = append(found, path)
				}
			}
		}
		level = next
	}
	return found
}
