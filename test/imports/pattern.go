package imports

import "strings"

// fits reports whether the pattern of a table names the package at path.
func fits(pattern, path string) bool {
	if pattern == "..." {
		return true
	}
	if dir, ok := strings.CutSuffix(pattern, "/..."); ok {
		return below(dir, path)
	}
	if dir, ok := strings.CutSuffix(pattern, "/*"); ok {
		name, found := strings.CutPrefix(path, dir+"/")
		return found && !strings.Contains(name, "/")
	}
	return pattern == path
}

func fitsAny(patterns []string, path string) bool {
	for _, p := range patterns {
		if fits(p, path) {
			return true
		}
	}
	return false
}

// below reports whether path is dir or lies under it.
func below(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
