package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/export/metrics"
	"github.com/promptware-os/pwos/internal/version"
	"github.com/promptware-os/pwos/view"
)

func newMetrics(a *app) *cobra.Command {
	var f serving
	var tokenFile string
	cmd := &cobra.Command{
		Use:   "metrics --listen ADDR",
		Short: "serve the kernel's counters to Prometheus",
		Long: `metrics serves http://ADDR/metrics in Prometheus' format: calls and refusals by syscall, how
long they take, processes by state, calls that wait for an approval, budgets, the length of
the journal. No series has a process as a label.

Each scrape asks the kernel, with four queries that are journaled as yours. While the kernel
is away pwos_up is 0; metrics does not start it.

It serves this machine alone, unless --tls-cert, --tls-key and --token-file are given. The
token file is made if it is missing; Prometheus sends its content as a bearer token.`,
		Example: `  pwos metrics --listen 127.0.0.1:9464
  pwos metrics --listen :9464 --tls-cert cert.pem --tls-key key.pem --token-file token`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.address == "" {
				return cli.Usage(cmd, errors.New("--listen ADDR is missing, such as --listen 127.0.0.1:9464"))
			}
			certificate, err := f.certificate()
			if err != nil {
				return cli.Usage(cmd, err)
			}
			listener, err := f.listen("--listen")
			if err != nil {
				return cli.Usage(cmd, err)
			}
			defer func() { _ = listener.Close() }() // the server closes it
			token := ""
			switch {
			case tokenFile != "":
				if token, err = bearer(tokenFile); err != nil {
					return err
				}
			case !listener.Addr().(*net.TCPAddr).IP.IsLoopback():
				return cli.Usage(cmd, fmt.Errorf("--listen %s is open to other machines: give --token-file too", f.address))
			}
			return a.metrics(cmd.Context(), listener, certificate, token)
		},
	}
	f.flags(cmd)
	cmd.Flags().StringVar(&f.address, "listen", "", "address to serve at; port 0: any that is free")
	cmd.Flags().StringVar(&tokenFile, "token-file", "", "file of the token that each request has to bear; made where it is not there")
	return cmd
}

// metrics serves until ctx ends or the terminal hangs up.
func (a *app) metrics(ctx context.Context, listener net.Listener, certificate *tls.Certificate, token string) (err error) {
	ctx, stop := cli.UntilHangup(ctx)
	defer stop()
	server := metrics.NewServer(metrics.Options{
		Dial: a.DialRunning, Version: version.Build(), Token: token,
		Trouble: func(err error) {
			if err != nil {
				a.Say("the kernel does not answer: %v", err)
			} else {
				a.Say("the kernel answers again")
			}
		},
	})
	defer cli.CloseInto(&err, server)
	scheme := "http"
	if certificate != nil {
		scheme = "https"
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS12})
	}
	at := fmt.Sprintf("%s://%s/metrics", scheme, listener.Addr())
	t := new(view.Table)
	t.Row("serving", at)
	if err := a.PrintEither(view.Object(nil).Text("url", at).Close(), t); err != nil {
		return err
	}
	web := &http.Server{
		Handler: server, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	ended := context.AfterFunc(ctx, func() { _ = web.Close() }) // Serve returns the error
	defer ended()
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics on %s: %w", listener.Addr(), err)
	}
	return context.Cause(ctx)
}
