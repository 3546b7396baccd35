package view

import (
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// OfKernel returns an object with the member kernel before its own; with an empty name it is unchanged.
func OfKernel(kernel string, object schema.Value) schema.Value {
	if kernel == "" || len(object) < 2 || object[0] != '{' {
		return object
	}
	head := Object(nil).Text("kernel", kernel).Close()
	if string(object) == "{}" {
		return head
	}
	return append(append(head[:len(head)-1:len(head)-1], ','), object[1:]...)
}

// Unanswered is the line of a kernel that did not answer: its name, and the error.
func Unanswered(kernel string, why *fault.Fault) schema.Value {
	return Object(nil).Text("kernel", kernel).Raw("error", Object(nil).Text("id", string(why.ID)).Text("message", why.Message).Close()).Close()
}
