package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/view"
)

const sealHelp = `The key is one of your SSH keys, ed25519 or rsa: one that the ssh-agent holds, else a file
in ~/.ssh; --identity or PWOS_IDENTITY names another. No kernel is needed. A kernel with the
same key opens the value with Crypto.Open; unseal opens what its Crypto.Seal returns.

Exit status: 3 no matching key, or its holder refuses; 7 the ssh-agent does not answer;
10 the value was altered.`

func newSeal(a *app) *cobra.Command {
	var aad string
	var line bool
	cmd := &cobra.Command{
		Use:   "seal",
		Short: "seal a secret with your own key",
		Long: `seal reads a secret from stdin, byte for byte, and prints it sealed: a line of text that
may be stored and shown, and that the kernel's vault/ accepts. It differs each time.

` + sealHelp,
		Example: `  printf %s "$TOKEN" | pwos seal
  pwos seal --aad vault/token --line < token.txt
  pwos mem set vault/token "$(pwos seal < token.txt)"`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := a.Bound(cmd.Context(), 0)
			defer cancel()
			secret, err := a.ReadStdin(ctx)
			if err != nil {
				return err
			}
			defer clear(secret)
			plaintext := secret
			if line {
				plaintext = bytes.TrimSuffix(bytes.TrimSuffix(plaintext, []byte("\n")), []byte("\r"))
			}
			value, err := a.Keys().Seal(ctx, plaintext, []byte(aad))
			if err != nil {
				return err
			}
			return a.PrintText(value)
		},
	}
	cmd.Flags().StringVar(&aad, "aad", "", "text that is stored with the value unencrypted and cannot be changed, such as its key")
	cmd.Flags().BoolVar(&line, "line", false, "remove one line end at the end of stdin")
	return cmd
}

func newUnseal(a *app) *cobra.Command {
	var aad string
	cmd := &cobra.Command{
		Use:   "unseal [VALUE]",
		Short: "open what was sealed with your own key",
		Long: `unseal opens a sealed value, given as an argument or on stdin, and prints the secret, byte
for byte. A JSON string will do, as "pwos mem get" prints it.

` + sealHelp,
		Example: `  pwos unseal pwenc:v1:eyJ2...
  pwos mem get vault/token | pwos unseal
  pwos unseal --aad vault/token < token.sealed`,
		Args: cli.Arguments(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.Bound(cmd.Context(), 0)
			defer cancel()
			value, err := a.sealedValue(ctx, args)
			if err != nil {
				return err
			}
			plaintext, carried, err := a.Keys().Open(ctx, value)
			if err != nil {
				return err
			}
			defer clear(plaintext)
			if cmd.Flags().Changed("aad") && string(carried) != aad {
				return fault.SealBroken.New("the value has another aad: it was sealed for another purpose")
			}
			return a.printSecret(plaintext)
		},
	}
	cmd.Flags().StringVar(&aad, "aad", "", "the aad that the value must have")
	return cmd
}

// sealedValue returns the sealed value in the argument or, without one, on stdin. It may be quoted as a JSON string.
func (a *app) sealedValue(ctx context.Context, args []string) (string, error) {
	text := strings.Join(args, "")
	if len(args) == 0 {
		read, err := a.ReadStdin(ctx)
		if err != nil {
			return "", err
		}
		text = string(read)
	}
	text = strings.TrimSpace(text)
	if content, ok := view.Text([]byte(text)); ok {
		return content, nil
	}
	return text, nil
}

// printSecret prints a secret unchanged; to a terminal it is escaped, since its content is untrusted.
func (a *app) printSecret(plaintext []byte) error {
	if a.StdoutTerminal() {
		if !utf8.Valid(plaintext) {
			return errors.New("the secret is binary and stdout is a terminal: send it to a file")
		}
		return a.PrintText(shownLines(string(plaintext)))
	}
	if _, err := a.Stdout.Write(plaintext); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// shownLines escapes each line of a text, and removes the last line end.
func shownLines(text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = view.Escaped(line)
	}
	return strings.Join(lines, "\n")
}
