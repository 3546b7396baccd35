package host

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// signer lets a program sign for git with the keys of an ssh-agent, at a socket in the program's directory for temporary files. It passes
// on what lists the keys, and what signs as git does. With other requests the program could log in wherever the keys are accepted, and
// open what is sealed to them.
type signer struct {
	agent    string // the path of the ssh-agent's socket
	listener *net.UnixListener
	dev, ino uint64 // of the socket's file, which the program may move
}

// signerName is the name of the socket.
const signerName = ".ssh-agent"

// Bounds of a signer.
const (
	longestRequest = 256 << 10 // as in OpenSSH
	mostSigning    = 16        // connections
)

// listenSigner listens for a program; nil if it signs nothing. What has ended may not have removed an earlier socket.
func (c Command) listenSigner() (*signer, error) {
	if c.Sign == "" {
		return nil, nil
	}
	dir, err := os.Open(c.tmp())
	if err != nil {
		return nil, withoutPath(err)
	}
	defer dir.Close() // nothing was written
	path := filepath.Join(dir.Name(), signerName)
	if at := fmt.Sprintf("/proc/self/fd/%d", dir.Fd()); isDir(at) { // an address has only 108 bytes
		path = filepath.Join(at, signerName)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, errors.New("listen for requests to the ssh-agent: the path of the agent's temporary files may be too long")
	}
	listener.SetUnlinkOnClose(false) // it goes with its directory
	s := &signer{agent: c.Sign, listener: listener}
	err = os.Chmod(path, 0o666) // only the program reaches it
	if err == nil {
		var info os.FileInfo
		if info, err = os.Lstat(path); err == nil {
			st := info.Sys().(*syscall.Stat_t)
			s.dev, s.ino = uint64(st.Dev), st.Ino
		}
	}
	if err != nil {
		s.close()
		return nil, withoutPath(err)
	}
	return s, nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func (s *signer) close() {
	if s != nil {
		_ = s.listener.Close() // nothing was written to it
	}
}

// is reports whether a file is the signer's socket.
func (s *signer) is(dev, ino uint64) bool { return s != nil && s.dev == dev && s.ino == ino }

// serve serves a program until it has ended.
func (s *signer) serve(ended <-chan struct{}) {
	var open sync.WaitGroup
	defer open.Wait()
	open.Go(func() {
		<-ended
		s.close()
	})
	places := make(chan struct{}, mostSigning)
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // a lack of descriptors, which ends
			time.Sleep(lastPause)
			continue
		}
		select {
		case places <- struct{}{}:
			open.Go(func() {
				defer func() { <-places }()
				s.attend(conn, ended)
			})
		default:
			_ = conn.Close() // nothing was written to it
		}
	}
}

// attend serves one connection.
func (s *signer) attend(conn net.Conn, ended <-chan struct{}) {
	agent, err := net.Dial("unix", s.agent)
	over := make(chan struct{})
	var closer sync.WaitGroup
	closer.Go(func() {
		select {
		case <-over:
		case <-ended:
		}
		_ = conn.Close() // the other end sees that
		if agent != nil {
			_ = agent.Close()
		}
	})
	defer closer.Wait()
	defer close(over)
	for err == nil {
		var message []byte
		if message, err = readMessage(conn); err != nil {
			return
		}
		answer := []byte{agentFailure}
		if isForGit(message) {
			if err = writeMessage(agent, message); err == nil {
				answer, err = readMessage(agent)
			}
		}
		if err == nil {
			err = writeMessage(conn, answer)
		}
	}
}

// Messages of the protocol of ssh-agent.
const (
	agentFailure   = 5
	agentListKeys  = 11
	agentSign      = 13
	signaturesFlag = 4 // bytes
)

// isForGit reports whether a request lists the keys, or signs what git signs: PROTOCOL.sshsig of OpenSSH, with the namespace git. What is
// signed at a login does not begin like that.
func isForGit(request []byte) bool {
	if len(request) == 0 {
		return false
	}
	kind, rest := request[0], request[1:]
	if kind == agentListKeys {
		return len(rest) == 0
	}
	_, rest, keyed := cutString(rest)
	data, rest, whole := cutString(rest)
	content, signs := bytes.CutPrefix(data, []byte("SSHSIG"))
	namespace, _, named := cutString(content)
	return kind == agentSign && keyed && whole && len(rest) == signaturesFlag && signs && named && string(namespace) == "git"
}

// cutString splits off a string of the protocol: its length, and its bytes.
func cutString(b []byte) (text, rest []byte, ok bool) {
	if len(b) < 4 {
		return nil, nil, false
	}
	length := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(length) > uint64(len(b)) {
		return nil, nil, false
	}
	return b[:length], b[length:], true
}

func readMessage(from io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(from, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > longestRequest {
		return nil, errors.New("the message is too long")
	}
	message := make([]byte, n)
	_, err := io.ReadFull(from, message)
	return message, err
}

func writeMessage(to io.Writer, message []byte) error {
	_, err := to.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(message))), message...))
	return err
}
