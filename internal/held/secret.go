package held

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// keyNames are the names of files that have keys or credentials, and keyEnds how such names end.
var (
	keyNames = [...]string{
		"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".my.cnf", ".htpasswd", ".git-credentials",
	}
	keyEnds = [...]string{".pem", ".key", ".ppk", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".tfstate", ".tfvars"}
)

// secretWords are what the names of files of settings say that have secrets, and settingsEnds how such names end.
var (
	secretWords  = [...]string{"secret", "credential", "password", "passwd", "token", "apikey", "api_key", "api-key"}
	settingsEnds = [...]string{"", ".json", ".yaml", ".yml", ".toml", ".ini", ".conf", ".cfg", ".txt", ".env", ".properties", ".xml"}
)

// LooksSecret reports whether a file of that name usually has secrets.
func LooksSecret(name string) bool {
	if strings.HasPrefix(name, ".") && Named(name) {
		return true
	}
	name = strings.ToLower(name)
	if name == "cacert.pem" || strings.HasSuffix(name, ".pub") { // certificates of authorities, which programs bring along
		return false
	}
	end := filepath.Ext(name)
	return slices.Contains(keyNames[:], name) || slices.Contains(keyEnds[:], end) ||
		slices.Contains(settingsEnds[:], end) && (strings.HasPrefix(name, "service-account") || slices.ContainsFunc(secretWords[:], func(word string) bool { return strings.Contains(name, word) }))
}

// mostSearched is how many directories Secrets lists: it is to be quick, and not complete.
const mostSearched = 2000

// Secrets searches directories for at most so many files that look secret, level by level, without following links, and not in what
// skip says. It stops after 2,000 directories, or when ctx ends.
func Secrets(ctx context.Context, dirs []string, many int, skip func(path string) bool) (found []string) {
	level, searched := slices.Clone(dirs), 0
	for depth := 0; depth <= Depth && len(level) > 0; depth++ {
		var next []string
		for _, dir := range level {
			if searched++; searched > mostSearched || ctx.Err() != nil || len(found) >= many {
				return found
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				continue // an agent cannot list it either
			}
			for _, entry := range entries {
				path := filepath.Join(dir, entry.Name())
				switch name := entry.Name(); {
				case entry.IsDir() && !slices.Contains(skipped[:], name) && !skip(path):
					next = append(next, path)
				case entry.Type().IsRegular() && len(found) < many && LooksSecret(name) && !skip(path):
					found = append(found, path)
				}
			}
		}
		level = next
	}
	return found
}
