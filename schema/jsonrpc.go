package schema

import (
	"strconv"

	"github.com/promptware-os/pwos/schema/fault"
	"github.com/promptware-os/pwos/schema/jsontype"
)

// The codes of JSON-RPC 2.0 errors (ABI 9.3, PROTOCOL 8).
const (
	RPCParse   = -32700 // the input is not JSON
	RPCMethod  = -32601 // unknown syscall
	RPCParams  = -32602 // invalid arguments
	RPCFailure = -32000 // all other refusals and failures
)

// RPCCode returns the error code of e in a JSON-RPC response.
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

// AppendRPCResult appends the JSON-RPC 2.0 response of a successful call, with its line break (ABI
// 9.2). Data is one valid JSON value on one line, null if empty; the id is always 1.
func AppendRPCResult(dst, data []byte) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","result":`...)
	if len(data) == 0 {
		data = []byte("null")
	}
	dst = append(dst, data...)
	return append(dst, `,"id":1}`+"\n"...)
}

// AppendRPCError appends the JSON-RPC 2.0 response of a failed call, with its line break. Its data is
// the error in OsMessage form.
func AppendRPCError(dst []byte, e *fault.Fault) []byte {
	dst = strconv.AppendInt(append(dst, `{"jsonrpc":"2.0","error":{"code":`...), int64(RPCCode(e)), 10)
	dst = jsontype.AppendString(append(dst, `,"message":`...), e.Text())
	dst = fault.AppendData(append(dst, `,"data":`...), e)
	return append(dst, `},"id":1}`+"\n"...)
}
