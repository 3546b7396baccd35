package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"html"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/console"
	"github.com/promptware-os/pwos/internal/replace"
	"github.com/promptware-os/pwos/view"
)

func newConsole(a *app) *cobra.Command {
	var address string
	var open bool
	cmd := &cobra.Command{
		Use:   "console",
		Short: "serve a web page that shows and controls the kernel",
		Long: `console serves a page on a loopback address: processes, the record as it grows, calls that
wait for approval, refusals, budgets, search. It runs until interrupted.

To open the page, open the file that console writes to the runtime directory. It
has a link that logs in one page, once, within five minutes. A second use is refused,
and the page says so. At a terminal, Enter makes another link. A page's session ends
after 30 minutes without it, and after 12 hours in any case.

The page acts as you. It can pause and end processes, answer approvals,
add to grants and take them away. It cannot replace a grant or make any other call.`,
		Example: `  pwos console --open
  pwos console --listen 127.0.0.1:7480`,
		Args: cli.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			listener, err := net.Listen("tcp", address)
			if err != nil {
				return cli.Usage(cmd, fmt.Errorf("--listen: %w", err))
			}
			defer func() { _ = listener.Close() }() // the server closes it
			if at := listener.Addr().(*net.TCPAddr); !at.IP.IsLoopback() {
				return cli.Usage(cmd, fmt.Errorf("--listen %s would be open to other machines: name a loopback address such as 127.0.0.1:%d", address, at.Port))
			}
			return a.console(cmd.Context(), listener, open)
		},
	}
	cmd.Flags().StringVar(&address, "listen", "127.0.0.1:0", "loopback address to listen on; port 0 takes any free port")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}

// console serves the page until ctx ends or the terminal hangs up.
func (a *app) console(ctx context.Context, listener net.Listener, open bool) (err error) {
	ctx, stop := cli.UntilHangup(ctx)
	defer stop()
	var dir string
	if err := a.WithKernel(ctx, 0, func(_ context.Context, c *client.Client) error { // this also starts a kernel if none runs
		dir = c.Places().Dir
		return nil
	}); err != nil {
		return err
	}
	link := &linkFile{path: filepath.Join(dir, fmt.Sprintf("console-%d.html", listener.Addr().(*net.TCPAddr).Port))}
	defer func() { err = errors.Join(err, link.remove()) }()
	server, err := console.New(console.Options{
		Listener: listener,
		Dial:     a.DialRunning,
		LoggedIn: func() {
			if err := link.remove(); err != nil {
				a.Say("%v", err)
			}
			a.Say("a page has logged in: the link is used up%s", a.moreLinks())
		},
	})
	if err != nil {
		return err
	}
	if err := a.showLink(server, link, open); err != nil {
		return err
	}
	if a.StdinTerminal() {
		go a.renewLinks(server, link) // not awaited: a read of the terminal cannot be cancelled
	}
	return server.Serve(ctx)
}

func (a *app) moreLinks() string {
	if a.StdinTerminal() {
		return "; Enter makes another one"
	}
	return ""
}

// showLink writes a new link to the file, prints the file's path, and opens it in a browser if open is set.
func (a *app) showLink(server *console.Server, link *linkFile, open bool) error {
	if err := link.write(server.NewLink()); err != nil {
		return err
	}
	t := new(view.Table)
	t.Row("open", link.path)
	t.Row("serving", server.URL())
	if err := a.PrintEither(view.Object(nil).Text("open", link.path).Text("url", server.URL()).Close(), t); err != nil {
		return err
	}
	if open {
		if err := openFile(link.path); err != nil {
			a.Say("no browser was started: open that file yourself: %v", err)
		}
	}
	return nil
}

// renewLinks writes a new link for each line that is typed at the terminal.
func (a *app) renewLinks(server *console.Server, link *linkFile) {
	for lines := bufio.NewScanner(a.Stdin); lines.Scan(); {
		if err := a.showLink(server, link, false); err != nil {
			a.Say("%v", err)
		}
	}
}

// linkFile is an HTML file that redirects to the link. The link must not be on a command line, which other users can read.
type linkFile struct{ path string }

func (l *linkFile) write(link string) error {
	at := html.EscapeString(link)
	page := "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<meta http-equiv=\"refresh\" content=\"0; url=" + at +
		"\">\n<title>pwos console</title>\n<p><a href=\"" + at + "\">pwos console</a></p>\n"
	if err := replace.File(l.path, []byte(page), 0o600); err != nil {
		return fmt.Errorf("write link: %w", err)
	}
	return nil
}

// remove removes the file. It is not an error if the file does not exist.
func (l *linkFile) remove() error {
	if err := os.Remove(l.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove link: %w", err)
	}
	return nil
}

// openFile opens a file in the user's browser and does not wait for it.
func openFile(path string) error {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	}
	browser := exec.Command(program, path)
	if err := browser.Start(); err != nil {
		return fmt.Errorf("open %s: %w", path, err)
	}
	return browser.Process.Release()
}
