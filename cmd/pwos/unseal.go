package main

import (
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
