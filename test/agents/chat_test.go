package agents_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// talker is an agent that exchanges messages with another.
type talker struct {
	*client
	peer int64   // from the operator
	took []int64 // latency of each message, in microseconds
}

// chat sends a number of messages to its peer and receives as many, and stores the latency of each.
func chat(args []string) int {
	c, err := channel()
	if err != nil {
		return failed(err)
	}
	count, _ := strconv.Atoi(args[0])
	a := &talker{client: c}
	for sent := 0; sent < count || len(a.took) < count; {
		if a.peer != 0 && sent < count {
			delivered, err := a.say()
			if err != nil {
				return failed(err)
			}
			if delivered {
				sent++
			}
		}
		if len(a.took) < count {
			if err := a.hear(sent < count && a.peer != 0); err != nil {
				return failed(err)
			}
		}
	}
	if err := c.note("took/"+os.Getenv("PWOS_PID"), a.took); err != nil {
		return failed(err)
	}
	return 0
}

// say sends a message, and reports whether the mailbox had room.
func (a *talker) say() (bool, error) {
	f, err := a.call("command", "Syscall.SendMsg",
		fmt.Sprintf(`{"receiver_pid":%d,"payload":{"sent":%d}}`, a.peer, time.Now().UnixMicro()))
	return strings.Contains(string(f.Data), "DELIVERED"), err
}

// hear handles the lines that have arrived. It waits for a line, but only briefly if there is a message left to send.
func (a *talker) hear(busy bool) error {
	wait := 600_000
	if busy {
		wait = 100
	}
	f, err := a.call("command", "Ipc.Receive", fmt.Sprintf(`{"max":1,"wait_ms":%d}`, wait))
	if err != nil {
		return err
	}
	var got struct {
		Messages []struct {
			Payload struct {
				Sent int64 `json:"sent"`
				Peer int64 `json:"peer"`
			} `json:"payload"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(f.Data, &got); err != nil {
		return err
	}
	for _, m := range got.Messages {
		if m.Payload.Peer != 0 {
			a.peer = m.Payload.Peer
		} else {
			a.took = append(a.took, time.Now().UnixMicro()-m.Payload.Sent)
		}
	}
	return nil
}
