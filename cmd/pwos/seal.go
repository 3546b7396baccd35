package main

import (
	"bytes"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
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
