// Command pong is an agent that sends every message back to its sender. It needs Ipc.Receive and Syscall.SendMsg.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/promptware-os/pwos/schema"
)

func main() {
	a := &agent{in: schema.NewLineReader(os.Stdin, schema.MaxEventLine), out: os.Stdout}
	if err := a.run(); !errors.Is(err, io.EOF) { // at EOF the kernel has closed the channel
		fmt.Fprintln(os.Stderr, "pong:", err)
		os.Exit(1)
	}
}

// agent is the program's end of its channel: a line of JSON a message.
type agent struct {
	in   *schema.LineReader
	out  io.Writer
	last int // id of the last call
}

// run serves until the channel fails, and says why.
func (a *agent) run() error {
	if err := a.greet(); err != nil {
		return err
	}
	wait := time.Minute.Milliseconds()
	for {
		got, err := call[schema.ReceiveOutput](a, "Ipc.Receive", &schema.ReceiveInput{WaitMS: &wait})
		if err != nil {
			return err
		}
		for _, m := range got.Messages {
			back := schema.SendMsgInput{ReceiverPID: m.SenderPID, Payload: m.Payload}
			if _, err := call[schema.SendMsgOutput](a, "Syscall.SendMsg", &back); err != nil {
				return err
			}
		}
	}
}

// greet answers the kernel's first line. Who this is the kernel knows: it has started it.
func (a *agent) greet() error {
	if _, err := a.in.Next(); err != nil {
		return err
	}
	return a.write(&schema.Message{Kind: schema.KindReply, Type: "Syscall.Authenticate"})
}

// call sends a command and returns the data of its answer.
func call[T any](a *agent, typ string, input any) (out *T, err error) {
	data, err := schema.Marshal(input)
	if err != nil {
		return nil, err
	}
	a.last++
	err = a.write(&schema.Message{Kind: schema.KindCommand, Type: typ, Data: data, Meta: schema.Metadata{
		Present: true, ID: strconv.Itoa(a.last), Timestamp: time.Now().UnixMilli(),
	}})
	if err != nil {
		return nil, err
	}
	line, err := a.in.Next()
	if err != nil {
		return nil, err
	}
	answer, failure := schema.Decode(line, schema.OsMessage)
	if failure != nil {
		return nil, fmt.Errorf("read answer to %s: %w", typ, failure)
	}
	if answer.Kind == schema.KindError {
		return nil, fmt.Errorf("%s was refused: %s", typ, answer.Data)
	}
	value, failure := schema.TypeOf[T]().Decode(answer.Data)
	if failure != nil {
		return nil, fmt.Errorf("read answer to %s: %w", typ, failure)
	}
	return value.(*T), nil
}

func (a *agent) write(m *schema.Message) error {
	_, err := a.out.Write(schema.AppendMessage(nil, m))
	return err
}
