package systemd

import (
	"fmt"
	"net"
	"strings"
)

// States of a daemon (sd_notify).
const (
	Ready    = "READY=1"    // clients may connect
	Stopping = "STOPPING=1" // the daemon is shutting down
)

// Status returns the assignment of a status text, which the manager displays in one line.
func Status(text string) string {
	return "STATUS=" + strings.ReplaceAll(text, "\n", " ")
}

// Notify sends assignments to the service manager, all in one datagram. It returns false and no error if there is no
// manager: NOTIFY_SOCKET is empty. A daemon should continue after an error.
func Notify(getenv func(string) string, assignments ...string) (sent bool, err error) {
	address := getenv("NOTIFY_SOCKET")
	if address == "" {
		return false, nil
	}
	// "@" means the zero byte that begins an abstract name; package net reads it the same way.
	if address[0] != '/' && address[0] != '@' {
		return false, fmt.Errorf("notify service manager: NOTIFY_SOCKET=%s is not the address of a Unix socket", address)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return false, fmt.Errorf("notify service manager: %w", err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte(strings.Join(assignments, "\n"))); err != nil {
		return false, fmt.Errorf("notify service manager: %w", err)
	}
	return true, nil
}
