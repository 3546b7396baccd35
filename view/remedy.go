package view

import (
	"net/url"
	"strconv"
	"strings"

	"github.com/promptware-os/pwos/schema"
	"github.com/promptware-os/pwos/schema/fault"
)

// Remedy returns the narrowest grant that, added to the process's grant, would allow a refused call: the syscall, the
// tool by its path, or the host. It returns nil if no grant would allow it, or if the entry does not have the request.
func Remedy(e *Entry) *schema.GrantInput {
	if e.PID == 0 || e.Success {
		return nil
	}
	grant := &schema.GrantInput{PID: e.PID, Mode: new(string)}
	*grant.Mode = "add"
	switch fault.ID(e.ErrorID) {
	case fault.CapabilityDenied:
		if name := nameOf(e); name != "" {
			grant.AllowedSyscalls = []string{name}
			return grant
		}
	case fault.HTTPForbidden:
		grant.HTTP = hostOf(e.Request)
	case fault.NetForbidden:
		if in, ok := As[schema.NetConnectInput](e.Request); ok && in.Local && in.Refused == "" {
			grant.AllowedSyscalls = []string{schema.Localhost(uint16(in.Port))}
			return grant
		}
		grant.HTTP = peerOf(e.Request)
	}
	if grant.HTTP == nil {
		return nil
	}
	grant.AllowedSyscalls = []string{schema.HTTPFetch.Type}
	return grant
}

// nameOf returns the name of an entry's call in a grant: its type, or the path of its tool; "" if the entry does not
// have that.
func nameOf(e *Entry) string {
	switch e.Type {
	case schema.CallType:
		in, ok := As[schema.CallInput](e.Request)
		if !ok {
			return ""
		}
		if path, ok := schema.ToolPath(strings.TrimPrefix(in.Syscall, "os:///")); ok {
			return "Call:" + path
		}
		return "" // it is relative to a base that the entry does not have
	case schema.HostToolUse.Type:
		in, ok := As[schema.ToolUseInput](e.Request)
		if !ok {
			return ""
		}
		return "Tool:" + in.Host + "/" + in.Tool
	}
	if row, ok := schema.Lookup(e.Type); ok && (row.Internal || row.Grant == schema.OperatorOnly) {
		return ""
	}
	return e.Type
}

// hostOf returns the grant for the host of a fetch, nil if the request does not name one.
func hostOf(request schema.Value) *schema.HTTPGrant {
	in, ok := As[schema.HTTPFetchInput](request)
	if !ok {
		return nil
	}
	at, err := url.Parse(in.URL)
	if err != nil || at.Hostname() == "" {
		return nil
	}
	return &schema.HTTPGrant{Hosts: []string{at.Host}, Plain: at.Scheme == "http"}
}

// peerOf returns the grant for the host of a connection, nil if no grant would allow it.
func peerOf(request schema.Value) *schema.HTTPGrant {
	in, ok := As[schema.NetConnectInput](request)
	if !ok || in.Local || in.Refused != "" {
		return nil
	}
	host := in.Host
	if in.Port != 0 && in.Port != 80 && in.Port != 443 {
		host += ":" + strconv.FormatInt(in.Port, 10)
	}
	return &schema.HTTPGrant{Hosts: []string{host}}
}
