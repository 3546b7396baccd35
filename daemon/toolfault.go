package daemon

import (
	"context"
	"errors"

	"github.com/promptware-os/pwos/ingest"
	"github.com/promptware-os/pwos/rootfs"
	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/uri"
	"github.com/promptware-os/pwos/usercall"
)

// classes are what goes over the wire for each error of a name, a resource or a tool.
func classes() []struct {
	class schema.Class
	of    []error
} {
	return []struct {
		class schema.Class
		of    []error
	}{
		{schema.NotFound, []error{ingest.ErrNotFound}},
		{schema.InvalidInput, []error{
			usercall.ErrInput, usercall.ErrNotCallable, rootfs.ErrNotRegular, rootfs.ErrRemote, ingest.ErrFrontMatter, ingest.ErrText, ingest.ErrIntegrity,
		}},
		{schema.Forbidden, []error{rootfs.ErrRefused, ingest.ErrSignature, ingest.ErrUnproven, ingest.ErrNoWeb, usercall.ErrNoPrograms}},
		{schema.Timeout, []error{usercall.ErrTime}},
		{schema.Insufficient, []error{rootfs.ErrTooLarge}},
	}
}

// callFault is err as its caller gets it. The texts of these packages are made to be shown.
func callFault(ctx context.Context, err error) *schema.Error {
	if cause, ok := errors.AsType[*schema.Error](context.Cause(ctx)); ok {
		return cause
	}
	if _, ok := errors.AsType[*uri.NameError](err); ok && !errors.Is(err, ingest.ErrFrontMatter) {
		return nameFault(err)
	}
	for _, row := range classes() {
		for _, known := range row.of {
			if errors.Is(err, known) {
				return schema.Errorf(row.class, "%s", err.Error())
			}
		}
	}
	if of, ok := errors.AsType[*schema.Error](err); ok { // what it is about was said around it
		return &schema.Error{Kind: of.Kind, Message: err.Error()}
	}
	if _, ok := errors.AsType[*usercall.ToolError](err); ok {
		return schema.Errorf(schema.Upstream, "%s", err.Error())
	}
	return schema.AsError(err)
}
