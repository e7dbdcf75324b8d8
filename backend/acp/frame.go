package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// The error codes of JSON-RPC 2.0 and of ACP.
const (
	CodeParseError       = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternalError    = -32603
	CodeAuthRequired     = -32000
	CodeResourceNotFound = -32002
	CodeRequestCancelled = -32800
)

// frame has its members in the order that people expect to read.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// NewRequest encodes a request. id is the token of the id, so that a foreign id is returned unchanged.
func NewRequest(id json.RawMessage, method string, params any) ([]byte, error) {
	return encode(frame{ID: id, Method: method, Params: params})
}

// NewNotification encodes a notification; params may be nil.
func NewNotification(method string, params any) ([]byte, error) {
	return encode(frame{Method: method, Params: params})
}

// NewResponse encodes a response with a result; nil becomes an empty object, because ACP's results are objects.
func NewResponse(id json.RawMessage, result any) ([]byte, error) {
	if result == nil {
		result = struct{}{}
	}
	return encode(frame{ID: id, Result: result})
}

// NewErrorResponse encodes a response with an error.
func NewErrorResponse(id json.RawMessage, failure *Error) ([]byte, error) {
	return encode(frame{ID: id, Error: failure})
}

// encode returns a line without a line end, and without the escapes that encoding/json adds for HTML.
func encode(f frame) ([]byte, error) {
	f.Version = "2.0"
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(f); err != nil {
		return nil, fmt.Errorf("encode frame: %w", err)
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n")), nil
}
