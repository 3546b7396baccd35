package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// signKeys are the settings of git that decide what is signed.
const signKeys = `^(commit\.gpgsign|tag\.(gpgsign|forcesignannotated))$`

// sign lets git in the agent sign as its user does, with the keys of the user's ssh-agent. The kernel passes on only what git
// signs, so that the agent cannot log in with them.
func (j *job) sign(ctx context.Context) error {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return errors.New("sign=true needs an ssh-agent, and SSH_AUTH_SOCK is not set: start one, and add your key with ssh-add")
	}
	socket, err := filepath.Abs(socket)
	if err != nil {
		return fmt.Errorf("find ssh-agent: %w", err)
	}
	if info, err := os.Stat(socket); err != nil || info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("sign=true needs an ssh-agent, and SSH_AUTH_SOCK, %s, is no socket: start one, and add your key with ssh-add", socket)
	}
	if format := gitSetting(ctx, "gpg.format"); format != "ssh" {
		return fmt.Errorf(`sign=true is for signing with ssh, and the gpg.format of your git is %q: keys of GnuPG stay out of reach; for ssh, "git config --global gpg.format ssh" and user.signingkey`, format)
	}
	key, err := signingKey(gitSetting(ctx, "user.signingkey", "--type=path"))
	if err != nil {
		return err
	}
	j.signing = fmt.Sprintf("[gpg]\n\tformat = ssh\n[user]\n\tsigningkey = \"key::%s\"\n", key) + gitSettings(ctx, signKeys, nil)
	j.input.Sign = &socket
	return nil
}

// gitSetting returns the value of one of the user's settings of git; "" if there is none.
func gitSetting(ctx context.Context, key string, options ...string) string {
	args := append(append([]string{"config", "--global", "--includes"}, options...), "--get", key)
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}

// signingKey returns the public key that user.signingkey is, or names as git does: by its file, or by that of the private key.
func signingKey(setting string) (string, error) {
	if setting == "" {
		return "", errors.New(`sign=true needs the key that git signs with: "git config --global user.signingkey ~/.ssh/id_ed25519.pub"`)
	}
	if literal, is := strings.CutPrefix(setting, "key::"); is || strings.HasPrefix(setting, "ssh-") {
		if key := publicKey(literal); key != "" {
			return key, nil
		}
		return "", errors.New("user.signingkey of your git is no public key of ssh")
	}
	file := strings.TrimSuffix(setting, ".pub") + ".pub"
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read the public key of user.signingkey: %w", err)
	}
	if key := publicKey(string(text)); key != "" {
		return key, nil
	}
	return "", fmt.Errorf("%s, the public key of user.signingkey, is none of ssh", file)
}

// publicKey returns the type and the key of a line of a public key; "" if it is none.
func publicKey(line string) string {
	fields := strings.Fields(line)
	if len(fields) < 2 || strings.Trim(fields[0]+fields[1], base64Letters+"-@.") != "" || !strings.Contains(fields[0], "-") {
		return ""
	}
	return fields[0] + " " + fields[1]
}

const base64Letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/="
