package main

import (
	"path/filepath"
)

// shareCaches gives the program the directory of shared caches, which it returns, by the variables of the tools that do not follow
// XDG_CACHE_HOME. Variables that the program has stay.
func (j *job) shareCaches() (string, error) {
	program := &j.input.Program
	homes, err := j.homes()
	if err != nil {
		return "", err
	}
	dir, err := homes.Cache()
	if err != nil {
		return "", err
	}
	for name, below := range map[string]string{
		"XDG_CACHE_HOME": "", "npm_config_cache": "npm", "YARN_CACHE_FOLDER": "yarn", "pnpm_config_store_dir": "pnpm", "BUN_INSTALL_CACHE_DIR": "bun",
		"DENO_DIR": "deno", "PIP_CACHE_DIR": "pip", "UV_CACHE_DIR": "uv", "GOCACHE": "go-build", "GOMODCACHE": "go-mod", "CARGO_HOME": "cargo",
		"GRADLE_USER_HOME": "gradle",
	} {
		_, given := program.Env[name]
		if _, sealed := program.Secrets[name]; !given && !sealed {
			program.Env[name] = filepath.Join(dir, below)
		}
	}
	return dir, nil
}
