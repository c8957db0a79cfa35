package resultmap

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/durable-mcp/durable-mcp/tool-sdk/contract"
	"github.com/nexus-rpc/sdk-go/nexus"
	"go.temporal.io/sdk/temporal"
)

// maxMessageBytes bounds a failure's message: it travels twice, in the operation
// and in its cause, beside the details.
const maxMessageBytes = 16 << 10

// maxDetailsBytes bounds a failure's details. The server reports the failure of
// an activity or a Workflow to the operation's caller in one body of at most a
// payload's size, with the details in base64; with a bigger one the operation
// hangs until it times out. The rest is for the message, escaped, and the frame.
const maxDetailsBytes = contract.PayloadLimit/4*3 - 128<<10

// ApplicationError returns the error that an activity or a Workflow ends with
// for the failure. Its type is the failure's own for [contract.CodeFailed], the
// code otherwise. It may be retried only if the failure says so, and never with
// the types that the contract names. The cause does not travel. Details that do
// not fit in a payload become a [contract.CodePayloadTooLarge] failure.
//
// A Nexus handler returns [OperationError] instead.
func ApplicationError(f *contract.Failure) error {
	return applicationError(portable(f))
}

func applicationError(f contract.Failure) error {
	options := temporal.ApplicationErrorOptions{NonRetryable: !f.Retryable || wireType(f.Code)}
	if len(f.Details) > 0 {
		options.Details = []any{RawValue(f.Details)}
	}
	return temporal.NewApplicationErrorWithOptions(f.Message, errorType(f), options)
}

// OperationError returns the error that a Nexus handler ends the operation with
// for the failure: failed or canceled, at the first attempt. Otherwise it is as
// [ApplicationError].
func OperationError(f *contract.Failure) error {
	final := portable(f)
	final.Retryable = false
	state := nexus.OperationStateFailed
	if final.Code == contract.CodeCanceled {
		state = nexus.OperationStateCanceled
	}
	return &nexus.OperationError{State: state, Message: final.Message, Cause: applicationError(final)}
}

// portable returns the failure as Temporal can carry it: text in UTF-8, all of
// it small enough.
func portable(f *contract.Failure) contract.Failure {
	p := *f
	p.Message = shorten(strings.ToValidUTF8(p.Message, "\uFFFD"), maxMessageBytes)
	p.Type = shorten(strings.ToValidUTF8(p.Type, "\uFFFD"), 256)
	if len(p.Details) > maxDetailsBytes {
		return contract.Failure{
			Code: contract.CodePayloadTooLarge,
			Message: fmt.Sprintf("The error result would take %d bytes; one Temporal failure holds at most %d. "+
				"Ask for less, or for a part at a time.", len(p.Details), maxDetailsBytes),
		}
	}
	return p
}

func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	end := limit - len(mark)
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

func errorType(f contract.Failure) string {
	switch {
	case f.Code != contract.CodeFailed && f.Code != "":
		return string(f.Code)
	case f.Type == "" || isCode(f.Type):
		return string(contract.CodeFailed)
	}
	return f.Type
}

func isCode(typ string) bool { return slices.Contains(contract.Codes(), contract.Code(typ)) }

// wireType tells the codes whose name is a type that the contract names.
func wireType(c contract.Code) bool {
	switch c {
	case contract.CodeToolError, contract.CodeProtocolError, contract.CodeOutcomeUnknown, contract.CodePayloadTooLarge:
		return true
	default:
		return false
	}
}

// ToolError returns the failure that says: the tool answered, and its answer is
// this error result.
func ToolError(r contract.Result) *contract.Failure {
	message, ok := r.Text()
	if !ok || message == "" {
		message = "The tool reported an error."
	}
	return &contract.Failure{Code: contract.CodeToolError, Message: shorten(message, maxMessageBytes), Details: r.JSON()}
}

// ProtocolError returns the failure for a JSON-RPC error of an upstream.
func ProtocolError(e *contract.ProtocolError) *contract.Failure {
	return &contract.Failure{Code: contract.CodeProtocolError, Message: e.Message, Details: e.JSON()}
}
