package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/promptware-os/pwos/internal/held"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/schema"
)

// keep stores the answer.
func (p *projectAnswer) keep() error {
	path, err := answerPath(p.project)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = replace.File(path, append(p.object(), '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// allowFile lets agents change what is at a path, in answer for its project. It returns false if programs outside do not run that.
func allowFile(path string) (bool, error) {
	at, err := realPath(path)
	if err != nil {
		return false, err
	}
	if filepath.Base(at) == projectFile {
		return true, trustFile(at)
	}
	info, err := os.Stat(at)
	of := held.Outside(at, err == nil && info.IsDir())
	if of == "" {
		return false, nil
	}
	dir := filepath.Dir(of)
	for !exists(dir) { // the agent may make it too
		dir = filepath.Dir(dir)
	}
	answer, err := answered(held.Project(dir, userHomes()))
	if err != nil {
		return false, err
	}
	rel, err := filepath.Rel(answer.project, of)
	if err != nil {
		return false, fmt.Errorf("find %s: %w", of, err)
	}
	if !slices.Contains(answer.outside, rel) {
		answer.outside = append(answer.outside, rel)
		slices.Sort(answer.outside)
	}
	return true, answer.keep()
}

// writable returns what a program may change although programs outside run it, where it may write in its directory or elsewhere.
func (p *projectAnswer) writable(dir string, s *schema.Sandbox) (list []string) {
	for _, rel := range p.outside {
		path := filepath.Join(p.project, rel)
		if !filepath.IsLocal(rel) || filepath.Base(rel) == projectFile || covered(path, s.Read) || covered(path, s.Hide) || !covered(path, []string{dir}) && !covered(path, s.Write) || slices.Contains(s.Write, path) {
			continue
		}
		real, err := realPath(path)
		if info, bad := os.Lstat(path); err == nil && real == path && (bad != nil || info.Mode()&os.ModeSymlink == 0) { // the kernel takes no links
			list = append(list, path)
		}
	}
	return list
}
