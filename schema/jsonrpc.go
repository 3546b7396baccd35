package schema

import (
	"strconv"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// The codes of JSON-RPC 2.0 errors (ABI 9.3, PROTOCOL 8).
const (
	RPCParse   = -32700 // the input is not JSON
	RPCMethod  = -32601 // no such syscall
	RPCParams  = -32602 // arguments that do not fit
	RPCFailure = -32000 // all else that the kernel refuses or fails at
)

// RPCCode returns the code that a JSON-RPC response shows for e.
func RPCCode(e *fault.Fault) int {
	switch e.Kind {
	case fault.InvalidJSON:
		return RPCParse
	case fault.UnknownSyscall:
		return RPCMethod
	case fault.InvalidInput, fault.SchemaViolation:
		return RPCParams
	}
	return RPCFailure
}

// AppendRPCResult appends the JSON-RPC 2.0 response of a call that succeeded, its '\n' included (ABI 9.2). Data is one valid
// JSON value on one line, null where it is empty; the id is always 1.
func AppendRPCResult(dst, data []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","result":`...)
	if len(data) == 0 {
		data = []byte("null")
	}
	dst = append(dst, data...)
	return append(dst, `,"id":1}`+"\n"...)
}

// AppendRPCError appends the JSON-RPC 2.0 response of a call that failed, its '\n' included. The kernel's error, as OsMessage
// shows it, is its data.
func AppendRPCError(dst []byte, e *fault.Fault) []byte {
	dst = strconv.AppendInt(append(dst, `{"jsonrpc":"2.0","error":{"code":`...), int64(RPCCode(e)), 10)
	dst = jsontype.AppendString(append(dst, `,"message":`...), e.Text())
	dst = fault.AppendData(append(dst, `,"data":`...), e)
	return append(dst, `},"id":1}`+"\n"...)
}
