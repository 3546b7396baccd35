// Package prompts keeps what users have asked of the agents that work for them (PROTOCOL 12, Steps).
package prompts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/kernel"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/secret"
)

// Keeper keeps prompts: the texts in files, and which one each session of an agent works on. Its methods are safe for concurrent use.
type Keeper struct {
	Dir string                 // of the texts, each under its digest; it is made when it is needed
	Off bool                   // no text is kept
	Of  func(pid int64) string // the name of an agent

	mu     sync.Mutex
	latest map[int64]map[string]*schema.StepPrompt // by process, and by host and session
}

// most bounds the sessions that are remembered of a process.
const most = 64

// sessionOf names a session. A host's hooks name a subagent behind a slash: it works on the prompt of its session.
func sessionOf(host, session string) string {
	session, _, _ = strings.Cut(session, "/")
	return host + "\x00" + session
}

// Submit is the runner of Prompt.Submit.
func (k *Keeper) Submit(_ context.Context, job *kernel.Job, in *schema.PromptSubmitInput) (out schema.PromptSubmitOutput, _ error) {
	sum := sha256.Sum256([]byte(in.Text))
	out.Agent, out.Digest = k.Of(job.PID), "sha256-"+base64.StdEncoding.EncodeToString(sum[:])
	k.mu.Lock()
	defer k.mu.Unlock()
	sessions := k.latest[job.PID]
	if sessions == nil || len(sessions) >= most {
		sessions = make(map[string]*schema.StepPrompt)
		if k.latest == nil {
			k.latest = make(map[int64]map[string]*schema.StepPrompt)
		}
		k.latest[job.PID] = sessions
	}
	sessions[sessionOf(in.Host, in.Session)] = &schema.StepPrompt{Entry: int64(job.Seq), Digest: out.Digest}
	if k.Off {
		return out, nil
	}
	if err := os.MkdirAll(k.Dir, 0o700); err != nil {
		return out, fmt.Errorf("keep prompt: %w", err)
	}
	// The time of the file, by which it is forgotten, is that of the latest such prompt.
	if err := replace.File(k.path(out.Digest), []byte(secret.Text(in.Text)), 0o600); err != nil {
		return out, fmt.Errorf("keep prompt: %w", err)
	}
	return out, nil
}

// Latest returns the prompt that a session of an agent works on; nil if the host has told none.
func (k *Keeper) Latest(pid int64, host, session string) *schema.StepPrompt {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.latest[pid][sessionOf(host, session)]
}

// Ended forgets the sessions of an agent.
func (k *Keeper) Ended(pid int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.latest, pid)
}

// path returns where a text is kept, "" for what is no digest.
func (k *Keeper) path(digest string) string { return pathIn(k.Dir, digest) }

func pathIn(dir, digest string) string {
	encoded, _ := strings.CutPrefix(digest, "sha256-")
	sum, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(sum) != sha256.Size {
		return ""
	}
	return filepath.Join(dir, hex.EncodeToString(sum))
}

// Text returns the text of a prompt, without what looked secret in it; "" if it is not kept, or not any more.
func (k *Keeper) Text(digest string) (string, error) {
	path := k.path(digest)
	if path == "" {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Forget removes the texts of prompts that were last submitted before a time.
func (k *Keeper) Forget(before time.Time) error {
	entries, err := os.ReadDir(k.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var all error
	for _, entry := range entries {
		k.mu.Lock() // or one that is submitted now would go
		info, err := entry.Info()
		if err == nil && info.ModTime().Before(before) {
			err = os.Remove(filepath.Join(k.Dir, entry.Name()))
		}
		k.mu.Unlock()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}

// Each calls do with the texts in a directory, of which a Keeper may forget some meanwhile.
func Each(dir string, do func(name string, text []byte)) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read prompts: %w", err)
	}
	for _, entry := range entries {
		if sum, err := hex.DecodeString(entry.Name()); err != nil || len(sum) != sha256.Size {
			continue // one that is being written
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read prompts: %w", err)
		}
		do(entry.Name(), text)
	}
	return nil
}

// Remove removes the text of a prompt from a directory. It returns false if it is not there.
func Remove(dir, digest string) (bool, error) {
	path := pathIn(dir, digest)
	if path == "" {
		return false, nil
	}
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Redact removes a value from the texts in a directory, and returns how many had it. They are kept as long as before.
func Redact(dir string, value []byte) (redacted int, failed error) {
	err := Each(dir, func(name string, text []byte) {
		if !bytes.Contains(text, value) {
			return
		}
		path := filepath.Join(dir, name)
		info, err := os.Stat(path)
		if err == nil {
			err = replace.File(path, bytes.ReplaceAll(text, value, []byte("[redacted]")), 0o600)
		}
		if err == nil {
			err = os.Chtimes(path, time.Time{}, info.ModTime())
		}
		if redacted++; err != nil {
			failed = errors.Join(failed, fmt.Errorf("redact prompt: %w", err))
		}
	})
	return redacted, errors.Join(failed, err)
}
