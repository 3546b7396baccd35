package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/daemon/offline"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

// backupVerb is the verb for which a new passphrase is typed.
const backupVerb = "pwos backup"

// passphrase returns what has the passphrase of the key of steps: the first line of a file, or else the user at a terminal, who types a
// new one twice. Without both it is "".
func (a *app) passphrase(verb, file string) (offline.Passphrase, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		line, _, _ := bytes.Cut(text, []byte("\n"))
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			return nil, fault.UsageInvalid.New("the first line of %s is empty, and should be a passphrase", view.Escaped(file)).With("verb", verb)
		}
		return func(context.Context) (string, error) { return string(line), nil }, nil
	}
	if !a.StdinTerminal() {
		return func(context.Context) (string, error) { return "", nil }, nil
	}
	return func(ctx context.Context) (string, error) {
		const question = "passphrase for the key of what looks secret in files (empty: leave the key out): "
		for {
			typed, err := cli.AskPassphrase(ctx, "pwos: "+question)
			if err != nil || len(typed) == 0 || verb != backupVerb {
				return string(typed), err
			}
			again, err := cli.AskPassphrase(ctx, "pwos: the same again: ")
			if err != nil || bytes.Equal(typed, again) {
				return string(typed), err
			}
			a.Say("they differ")
		}
	}, nil
}

// openKey decrypts the key of steps of a backup that was read into dir. It returns false if the key is left out, and what is sealed with it
// stays so.
func (a *app) openKey(ctx context.Context, dir, file string) (opened bool, err error) {
	if has, err := offline.HasKey(dir); err != nil || !has {
		return !has, err
	}
	ask, err := a.passphrase("pwos restore", file)
	if err != nil {
		return false, err
	}
	const tries = 3
	for try := 1; ; try++ {
		passphrase, err := ask(ctx)
		if err != nil {
			return false, fmt.Errorf("open the key of steps: %w", err)
		}
		err = offline.OpenKey(dir, passphrase)
		if file != "" || try == tries || !errors.Is(err, fault.BackupPassphrase) {
			return passphrase != "" && err == nil, err
		}
		a.Say("the passphrase is wrong")
	}
}
