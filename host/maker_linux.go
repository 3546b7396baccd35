package host

import (
	"bufio"
	"encoding/hex"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Maker returns the program of the agent's process that has the client's end of a connection in the agent's network, and when this
// process, and those of the agent that it descends from, were started, the eldest first. false: it was not found.
func (p *Process) Maker(client, server netip.AddrPort) (program string, started []time.Time, ok bool) {
	pids, err := p.list()
	if err != nil {
		return "", nil, false
	}
	socket := ""
	for _, pid := range pids { // of the first that still runs: all are in one network
		if socket, err = socketOf(pid, client, server); err == nil {
			break
		}
	}
	if socket == "" {
		return "", nil, false
	}
	for _, pid := range pids {
		if !has(pid, socket) {
			continue
		}
		program, err = os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
		return program, ancestry(pid, pids), err == nil
	}
	return "", nil, false
}

// socketOf returns the name that the client's end of a connection has in /proc/PID/fd, in the network of a process; "": it is not there.
func socketOf(pid int, client, server netip.AddrPort) (name string, _ error) {
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/net/" + table)
		if err != nil {
			return "", err
		}
		for lines := bufio.NewScanner(f); lines.Scan() && name == ""; {
			const inode = 9
			fields := strings.Fields(lines.Text())
			if len(fields) > inode && address(fields[1]) == unmapped(client) && address(fields[2]) == unmapped(server) {
				name = "socket:[" + fields[inode] + "]"
			}
		}
		_ = f.Close() // read only
		if name != "" {
			break
		}
	}
	return name, nil
}

func unmapped(at netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port())
}

// address reads an address of /proc/net/tcp: words of four bytes, the last byte first, and the port.
func address(text string) (none netip.AddrPort) {
	host, port, _ := strings.Cut(text, ":")
	bytes, errHost := hex.DecodeString(host)
	number, errPort := strconv.ParseUint(port, 16, 16)
	if errHost != nil || errPort != nil || len(bytes)%4 != 0 {
		return none
	}
	for word := range slices.Chunk(bytes, 4) {
		slices.Reverse(word)
	}
	addr, _ := netip.AddrFromSlice(bytes) // the zero Addr is no client's
	return netip.AddrPortFrom(addr.Unmap(), uint16(number))
}

// has reports whether a process has a socket.
func has(pid int, socket string) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	files, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(files, func(f os.DirEntry) bool {
		name, err := os.Readlink(dir + "/" + f.Name())
		return err == nil && name == socket
	})
}

// ancestry returns when a process, and those that it descends from, were started, the eldest first, as far as they are in a list.
func ancestry(pid int, of []int) (started []time.Time) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return nil
	}
	boot := time.Now().Add(-time.Duration(now.Nano()))
	for slices.Contains(of, pid) {
		ticks, parent, ok := born(pid)
		if !ok {
			break
		}
		started = append(started, boot.Add(time.Duration(ticks)*time.Second/ticksPerSecond))
		pid = parent
	}
	slices.Reverse(started)
	return started
}
