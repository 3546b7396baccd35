package main

import (
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

// serving has the flags of a verb that serves HTTP.
type serving struct{ address, cert, key string }

// flags adds the flags for TLS.
func (f *serving) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "file of the server's certificate: serve over HTTPS")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "file of the certificate's key")
}

// certificate returns the server's certificate; nil if the flags name none.
func (f *serving) certificate() (*tls.Certificate, error) {
	switch {
	case (f.cert == "") != (f.key == ""):
		return nil, errors.New("--tls-cert and --tls-key must be given together")
	case f.cert == "":
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.cert, f.key)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert and --tls-key: %w", err)
	}
	return &pair, nil
}

// listen listens on the address, which must be a loopback address unless TLS is configured. flag is the flag's name, for errors.
func (f *serving) listen(flag string) (net.Listener, error) {
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	if addr := listener.Addr().(*net.TCPAddr); f.cert == "" && !addr.IP.IsLoopback() {
		return nil, errors.Join(fmt.Errorf("%s %s would be open to other machines without encryption: name a loopback address such as 127.0.0.1:%d, or give --tls-cert and --tls-key", flag, f.address, addr.Port), listener.Close())
	}
	return listener, nil
}

// shortestToken is the minimum length of a bearer token in bytes.
const shortestToken = 16

// bearer returns the token in a file, which must be closed to other users. If the file does not exist, it creates one with a new token.
func bearer(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		token := rand.Text()
		_, err = io.WriteString(f, token+"\n")
		return token, errors.Join(err, f.Close())
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make token: %w", err)
	}
	if f, err = os.Open(file); err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("read token: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("token file %s is open to other users: run %q", file, "chmod 600 "+file)
	}
	text, err := io.ReadAll(io.LimitReader(f, 4096))
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if len(token) < shortestToken || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("token file %s: a token must be one word of at least %d characters; remove the file to get a new one", file, shortestToken)
	}
	return token, nil
}
