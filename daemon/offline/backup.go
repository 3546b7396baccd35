package offline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"filippo.io/age"

	"github.com/promptware-os/pwos/effect/prompts"
	"github.com/promptware-os/pwos/effect/trees"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/journal/backup"
	"github.com/promptware-os/pwos/schema/fault"
)

// Names of directories in the state directory.
const (
	stepsName   = "steps"
	promptsName = "prompts"
	copiesName  = "reviews"
)

// Passphrase returns the passphrase with which the key of steps is encrypted; "": the key is left out.
type Passphrase func(context.Context) (string, error)

// StepsBackup is what a backup has of steps.
type StepsBackup struct {
	Stores int  // how many directories
	Sealed bool // some contents need the key
	Key    bool // the key is in it, encrypted with the passphrase
}

// Backup writes a backup of a state directory with the stores of steps. ask is called if contents are sealed.
func Backup(ctx context.Context, w io.Writer, source backup.Source, ask Passphrase) (m *backup.Manifest, running bool, made StepsBackup, err error) {
	dir, err := filepath.EvalSymlinks(source.Dir) // stores have the real paths of their trees
	if err != nil {
		return nil, false, made, err
	}
	var more []backup.File
	if more, err = sealedKey(ctx, dir, ask); err != nil { // before the journal is locked
		return nil, false, made, err
	}
	made.Key = len(more) > 0
	var stores *trees.Captured
	source.Steps = func() ([]backup.File, error) {
		var err error
		if stores, err = trees.Capture(filepath.Join(dir, stepsName), filepath.Join(dir, copiesName)); err != nil {
			return nil, err
		}
		made.Stores, made.Sealed = stores.Stores, stores.Sealed
		for _, file := range stores.Files {
			more = append(more, backup.File{Name: stepsName + "/" + file.Name, Size: file.Size, ReaderAt: file})
		}
		return more, prompts.Each(filepath.Join(dir, promptsName), func(name string, text []byte) {
			more = append(more, backup.File{Name: promptsName + "/" + name, Size: int64(len(text)), ReaderAt: bytes.NewReader(text)})
		})
	}
	m, running, err = backup.Write(ctx, w, source)
	if stores != nil {
		err = errors.Join(err, stores.Close())
	}
	return m, running, made, err
}

// sealedKey returns the file of the key that seals contents, encrypted with a passphrase; none if nothing is sealed, or it is left out.
func sealedKey(ctx context.Context, dir string, ask Passphrase) ([]backup.File, error) {
	stores, err := trees.Capture(filepath.Join(dir, stepsName), filepath.Join(dir, copiesName))
	if err != nil {
		return nil, err
	}
	if err := stores.Close(); err != nil || !stores.Sealed {
		return nil, err
	}
	key, err := trees.Key(filepath.Join(dir, stepsName))
	if err != nil || key == nil {
		return nil, err
	}
	passphrase, err := ask(ctx)
	if err != nil || passphrase == "" {
		return nil, err
	}
	to, err := age.NewScryptRecipient(passphrase)
	if err != nil {
		return nil, fmt.Errorf("encrypt the key of steps: %w", err)
	}
	var out bytes.Buffer
	in, err := age.Encrypt(&out, to)
	if err == nil {
		_, err = in.Write(key)
		err = errors.Join(err, in.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("encrypt the key of steps: %w", err)
	}
	return []backup.File{{Name: backup.KeyName, Size: int64(out.Len()), ReaderAt: bytes.NewReader(out.Bytes())}}, nil
}

// HasKey reports whether a backup that was read into dir has a key of steps.
func HasKey(dir string) (bool, error) {
	_, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(backup.KeyName)))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// OpenKey decrypts the key of steps of a backup that was read into dir. "" leaves it out.
func OpenKey(dir, passphrase string) error {
	path := filepath.Join(dir, filepath.FromSlash(backup.KeyName))
	if passphrase == "" {
		return os.Remove(path)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	key, err := decrypt(text, passphrase)
	if err != nil {
		return err
	}
	if err := replace.File(filepath.Join(filepath.Dir(path), trees.KeyName), key, 0o600); err != nil {
		return fmt.Errorf("store the key of steps: %w", err)
	}
	return os.Remove(path)
}

// mostWork bounds the work of a passphrase, in powers of two: a backup is read with 256 MiB of memory.
const mostWork = 18

func decrypt(text []byte, passphrase string) ([]byte, error) {
	with, err := age.NewScryptIdentity(passphrase)
	if err != nil {
		return nil, fmt.Errorf("decrypt the key of steps: %w", err)
	}
	with.SetMaxWorkFactor(mostWork)
	out, err := age.Decrypt(bytes.NewReader(text), with)
	if _, wrong := errors.AsType[*age.NoIdentityMatchError](err); wrong {
		return nil, fault.BackupPassphrase.New("the passphrase of the key of steps is wrong: nothing was restored")
	}
	var key []byte
	if err == nil {
		key, err = io.ReadAll(out)
	}
	if err != nil {
		return nil, fault.BackupBroken.New("the key of steps in the backup cannot be read: %v: nothing was restored", err)
	}
	return key, nil
}
