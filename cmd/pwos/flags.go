package main

import (
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/access"
	"github.com/promptware-os/pwos/cmd/pwos/internal/cli"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/view"
)

// The functions below parse numbers and names of the command line. Their errors are usage errors.

// operatorName stands for PID 0 where a mailbox is expected.
const operatorName = "operator"

// mailboxOf parses a mailbox: operatorName, or a PID that is least or greater.
func mailboxOf(text string, least int64) (int64, error) {
	if text == operatorName {
		return 0, nil
	}
	return cli.PIDOf(text, least)
}

// addressOf parses the receiver of a message: a mailbox of this kernel, or with @NAME of another one; kernel is nil for this one.
func addressOf(text string) (pid int64, kernel *string, err error) {
	process, kernel, err := processAt(text)
	if err == nil {
		pid, err = mailboxOf(process, 0)
	}
	return pid, kernel, err
}

// processAt splits a text such as 12@beta into a process and a kernel; kernel is nil without @.
func processAt(text string) (process string, kernel *string, err error) {
	process, name, abroad := strings.Cut(text, "@")
	if !abroad {
		return process, nil, nil
	}
	if !access.KernelName(name) {
		return "", nil, fmt.Errorf("%q is not the name of a kernel: 12@beta is process 12 of the kernel beta", name)
	}
	return process, &name, nil
}

// amountOf parses an amount: a JSON number of at least 0 (PROTOCOL 5).
func amountOf(text string) (float64, error) {
	if schema.Valid([]byte(text)) {
		if n, ok := view.As[float64](schema.Value(text)); ok && n >= 0 {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%q is not an amount: give a number of at least 0", text)
}
