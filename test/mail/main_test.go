// Package mail_test tests what the kernels of a cluster ask of each other: messages, spawns, views.
package mail_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cluster/bus"
	"github.com/promptware-os/pwos/internal/testkit/testkernel"
)

// asBus in the environment makes the test binary a bus: its value are the bus.Settings, as JSON.
const asBus = "PWOS_TEST_BUS"

func TestMain(m *testing.M) {
	if settings := os.Getenv(asBus); settings != "" {
		if err := runBus(settings); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	testkernel.Main(m)
}

// runBus runs a bus in the working directory, with the members file there, until it is interrupted. It prints its address.
func runBus(settings string) error {
	var s bus.Settings
	if err := json.Unmarshal([]byte(settings), &s); err != nil {
		return err
	}
	text, err := os.ReadFile("members")
	if err != nil {
		return err
	}
	if err := os.Mkdir("streams", 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	s.Dir, s.Members = "streams", access.ParseMembers(text, time.UTC)
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	node, err := bus.Start(s, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer node.Close()
	fmt.Println(node.Addr())
	<-interrupted
	return nil
}
