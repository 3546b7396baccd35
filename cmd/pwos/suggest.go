package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/promptware-os/pwos/client"
	"github.com/promptware-os/pwos/schema"
)

// meant is the type that differs from typ in upper and lower case alone, or whose CAP code typ is; "" where there is none.
func meant(typ string) string {
	for _, row := range schema.Syscalls() {
		if row.Type != typ && (strings.EqualFold(row.Type, typ) || row.Code != "" && strings.EqualFold(row.Code, typ)) {
			return row.Type
		}
	}
	return ""
}

// suggesting adds to the error that there is no typ which one may have been meant.
func suggesting(err error, typ string) error {
	denied, ok := errors.AsType[*client.KernelError](err)
	if like := meant(typ); ok && denied.Code == 404 && like != "" {
		return fmt.Errorf("%w; did you mean %s?", err, like)
	}
	return err
}
