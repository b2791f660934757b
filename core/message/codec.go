package message

import (
	"errors"
	"fmt"
	"slices"
)

// ErrMalformed is wrapped by every decoding error: the bytes are not what the codec expects. The text says what
// was expected and what was found.
var ErrMalformed = errors.New("malformed message")

// Codec translates between one host's message format and Message.
//
// For every message m that Decode accepts, Encode(m) returns the bytes that Decode was given, byte for byte. A codec is
// stateless and safe for concurrent use. It never keeps a reference to the bytes it is given.
type Codec interface {
	// Name is the name under which Lookup finds the codec.
	Name() string
	// Decode reads one message. Errors wrap ErrMalformed.
	Decode(raw []byte) (Message, error)
	// Encode writes one message of any origin. A message of this codec's format that is not Edited comes out as its
	// Raw; all others are built from their parts.
	Encode(m Message) ([]byte, error)
}

// The built-in formats.
const (
	FormatOpenAI    = "openai"
	FormatAnthropic = "anthropic"
	// FormatPi is the message format of pi and OpenClaw sessions.
	FormatPi = "pi"
)

// Formats returns the names of the built-in codecs.
func Formats() []string { return []string{FormatOpenAI, FormatAnthropic, FormatPi} }

// Lookup returns the built-in codec of that name.
func Lookup(name string) (Codec, error) {
	switch name {
	case FormatOpenAI:
		return openAI{}, nil
	case FormatAnthropic:
		return anthropic{}, nil
	case FormatPi:
		return pi{}, nil
	}
	return nil, fmt.Errorf("message: format %q is not one of %q", name, slices.Sorted(slices.Values(Formats())))
}

// Encode writes m in the format it came in. Messages made by New are written in the format named by fallback.
func Encode(m Message, fallback string) ([]byte, error) {
	name := m.Format
	if name == "" {
		name = fallback
	}
	c, err := Lookup(name)
	if err != nil {
		return nil, err
	}
	return c.Encode(m)
}
