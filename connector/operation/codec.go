package operation

import (
	"errors"
	"net/url"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// Codec returns the codec with its errors marked as such, so that a [Client] can tell
// them from those of Temporal: a call whose input cannot be encoded was never sent. Put
// it around a codec that may fail, like one on another machine.
func Codec(codec converter.PayloadCodec) converter.PayloadCodec { return &markedCodec{codec} }

type markedCodec struct{ codec converter.PayloadCodec }

var _ converter.PayloadCodecWithSerializationContext = (*markedCodec)(nil)

// WithSerializationContext implements [converter.PayloadCodecWithSerializationContext].
func (m *markedCodec) WithSerializationContext(ctx converter.SerializationContext) converter.PayloadCodec {
	if codec, ok := m.codec.(converter.PayloadCodecWithSerializationContext); ok {
		return &markedCodec{codec.WithSerializationContext(ctx)}
	}
	return m
}

func (m *markedCodec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	encoded, err := m.codec.Encode(payloads)
	return encoded, codecFailed(err)
}

func (m *markedCodec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	decoded, err := m.codec.Decode(payloads)
	return decoded, codecFailed(err)
}

// codecError is in the chain of an error of a codec: it says nothing of Temporal, nor
// against the call.
type codecError struct{ error }

func (e *codecError) Unwrap() error { return e.error }

func codecFailed(err error) error {
	if err == nil {
		return nil
	}
	return &codecError{err}
}

// ofCodec tells the error of a codec also where it is not marked, but of a request over
// HTTP: none to Temporal is.
func ofCodec(err error) bool {
	return errors.As(err, new(*codecError)) || errors.As(err, new(*url.Error))
}
