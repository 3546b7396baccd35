// Command pwos-bus runs the bus of a cluster of kernels: a NATS server with JetStream, configured for them (PROTOCOL 13).
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/logging"
	"github.com/promptware-os/pwos/internal/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := command(os.Stdout, os.Stderr)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "pwos-bus:", err)
		os.Exit(status(err))
	}
}

// misuse is the error of an invalid command line.
type misuse struct{ error }

func status(err error) int {
	if errors.As(err, new(misuse)) {
		return 2
	}
	return 1
}

// settings are the values of the flags.
type settings struct {
	bus.Settings
	members    string
	printUsers bool
	printKey   bool
}

func command(stdout, stderr io.Writer) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "pwos-bus --dir DIR --members FILE",
		Short: "run the bus that kernels meet at",
		Long: `pwos-bus runs a NATS server with JetStream for a cluster of pwos kernels, in the foreground,
until it is interrupted. It syncs each write before it acknowledges it. When clients may
connect it prints its address, on a line of its own.

FILE has a line for each kernel, as "pwos cluster key" prints it there. SIGHUP reads it and the
certificate again.
A member may write its own stream, read all streams, and send requests to other members.

With --name, --peers and --route several nodes make one bus, which goes on while a majority
of them runs. They know each other by keys: --print-key runs nothing, makes the key of this
node in DIR, and prints its line. FILE has the lines of all nodes, and is the same at each. A
node without a line is refused by the others. A --route to itself does nothing, so all nodes
can be started with the same list.

--print-users runs nothing either: it prints the members as the users of a NATS configuration, for
an existing NATS server. That needs JetStream with "sync_interval: always".`,
		Example: `  pwos-bus --dir /var/lib/pwos-bus --members /etc/pwos/members
  pwos-bus --dir d --members m --listen 0.0.0.0:4222 --cert bus.pem --key bus.key
  pwos-bus --dir d1 --name n1 --print-key >> m
  pwos-bus --dir d1 --members m --name n1 --peers 10.0.0.1:6222 --route 10.0.0.2:6222
  pwos-bus --members m --print-users >> nats.conf`,
		Args:          noArgs,
		Version:       version.Build(),
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.check(); err != nil {
				return misuse{err}
			}
			return s.run(cmd.Context(), stdout, stderr)
		},
	}
	cmd.SetOut(stdout)
	cmd.SetVersionTemplate("pwos-bus {{.Version}}\n")
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return misuse{err} })
	f := cmd.Flags()
	f.StringVar(&s.Dir, "dir", "", "directory of the streams, created if it is missing")
	f.StringVar(&s.members, "members", "", "file of the kernels that may join, and of the nodes")
	f.BoolVar(&s.printUsers, "print-users", false, "print the members as users of a NATS configuration, and end")
	f.BoolVar(&s.printKey, "print-key", false, "print the line of this node for the members file, and end")
	f.StringVar(&s.Listen, "listen", "127.0.0.1:4222", "HOST:PORT for kernels; port 0 takes a free one")
	f.Int64Var(&s.MaxBytes, "max-bytes", 0, "bytes of all streams (default: three quarters of what the disk has free)")
	f.StringVar(&s.Cert, "cert", "", "PEM file of the certificate, for TLS with kernels")
	f.StringVar(&s.Key, "key", "", "PEM file of the certificate's key")
	f.StringVar(&s.Name, "name", "", "name of this node, where several make one bus")
	f.StringVar(&s.Peers, "peers", "", "HOST:PORT for the other nodes")
	f.StringArrayVar(&s.Routes, "route", nil, "HOST:PORT of another node, as in its --peers; may be repeated")
	return cmd
}

func noArgs(cmd *cobra.Command, args []string) error {
	if err := cobra.NoArgs(cmd, args); err != nil {
		return misuse{err}
	}
	return nil
}

func (s *settings) check() error {
	switch {
	case s.printKey && (s.Dir == "" || s.Name == ""):
		return errors.New("--print-key needs --dir and --name: pwos-bus --help")
	case s.Name != "" && !access.NodeName(s.Name):
		return fmt.Errorf("--name %q must have at most 64 letters, digits, dots, hyphens and underscores, and begin with a letter or digit", s.Name)
	case s.printKey:
	case s.printUsers && s.members == "":
		return errors.New("--print-users needs --members: pwos-bus --help")
	case s.printUsers:
	case s.Dir == "" || s.members == "":
		return errors.New("--dir and --members are required: pwos-bus --help")
	case (s.Cert == "") != (s.Key == ""):
		return errors.New("--cert and --key must be given together")
	case (s.Name == "") != (s.Peers == ""):
		return errors.New("--name and --peers must be given together")
	case s.Name == "" && len(s.Routes) > 0:
		return errors.New("--route needs --name and --peers")
	}
	return nil
}

// read reads the members file and logs its refused lines.
func (s *settings) read(log *slog.Logger) error {
	text, err := os.ReadFile(s.members)
	if err != nil {
		return fmt.Errorf("read members: %w", err)
	}
	s.Members = access.ParseMembers(text, time.Local)
	for _, line := range s.Members.Refused() {
		log.Warn("line of the members file refused", "line", line.Line, "reason", line.Reason)
	}
	return nil
}

// print prints the members as the users of a NATS configuration.
func (s *settings) print(stdout io.Writer, log *slog.Logger) error {
	if err := s.read(log); err != nil {
		return err
	}
	users, err := bus.Users(s.Members)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(stdout, users); err != nil {
		return fmt.Errorf("write users: %w", err)
	}
	return nil
}

// printNode prints the line of this node.
func (s *settings) printNode(stdout io.Writer) error {
	line, err := bus.NodeLine(s.Dir, s.Name)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, line); err != nil {
		return fmt.Errorf("write line: %w", err)
	}
	return nil
}

// makeDir makes the directory of the node if it is missing.
func (s *settings) makeDir() (err error) {
	if s.Dir, err = filepath.Abs(s.Dir); err != nil {
		return fmt.Errorf("find directory: %w", err)
	}
	if err := os.Mkdir(s.Dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make directory: %w", err)
	}
	return nil
}

func (s *settings) run(ctx context.Context, stdout, stderr io.Writer) error {
	syscall.Umask(0o077)
	queue, log := logging.NewQueue(stderr, logging.Form{Level: slog.LevelInfo, Format: "auto", Plain: os.Getenv("NO_COLOR") != ""})
	defer queue.Close()
	if s.printUsers {
		return s.print(stdout, log)
	}
	if err := s.makeDir(); err != nil {
		return err
	}
	if s.printKey {
		return s.printNode(stdout)
	}
	if err := s.read(log); err != nil {
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	node, err := bus.Start(s.Settings, log)
	if err != nil {
		return err
	}
	defer node.Close()
	log.Info("ready", "version", version.Build(), "address", node.URL(), "members", len(s.Members.Keys()), "dir", s.Dir)
	if _, err := fmt.Fprintln(stdout, node.URL()); err != nil {
		return fmt.Errorf("write address: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			log.Info("ended")
			return nil
		case <-hangup:
			err := s.read(log)
			if err == nil {
				err = node.Reload(s.Settings)
			}
			if err != nil {
				log.Error("the members stay as they were", "error", err)
			} else {
				log.Info("members read again", "members", len(s.Members.Keys()))
			}
		}
	}
}
