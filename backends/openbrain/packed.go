package openbrain

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core/message"
)

// packedPrefix marks strings that are written in base64.
const packedPrefix = "base64:"

// pack returns s as text that every JSON store takes and gives back: s itself where that is so.
func pack(s string) string {
	if utf8.ValidString(s) && !strings.ContainsRune(s, 0) && !strings.HasPrefix(s, packedPrefix) {
		return s
	}
	return packedPrefix + base64.StdEncoding.EncodeToString([]byte(s))
}

// unpack undoes pack.
func unpack(s string) (string, error) {
	rest, ok := strings.CutPrefix(s, packedPrefix)
	if !ok {
		return s, nil
	}
	b, err := base64.StdEncoding.DecodeString(rest)
	if err != nil {
		return "", fmt.Errorf("openbrain: string is not the base64 it claims to be")
	}
	return string(b), nil
}

// packed is a string that is packed in JSON.
type packed string

// MarshalText packs p.
func (p packed) MarshalText() ([]byte, error) { return []byte(pack(string(p))), nil }

// UnmarshalText unpacks into p.
func (p *packed) UnmarshalText(b []byte) error {
	s, err := unpack(string(b))
	*p = packed(s)
	return err
}

// packedMessage is message.Message with strings that survive JSON whatever bytes they hold, and with slices that come back nil or
// empty as they were. Its fields are those of message.Message that are stored, by name and order.
type packedMessage struct {
	Role   packed        `json:"role,omitempty"`
	Parts  []packedPart  `json:"parts,omitzero"`
	Time   time.Time     `json:"time,omitzero"`
	ID     packed        `json:"id,omitempty"`
	Key    packed        `json:"key,omitempty"`
	Name   packed        `json:"name,omitempty"`
	Stop   packed        `json:"stop,omitempty"`
	Type   packed        `json:"type,omitempty"`
	Usage  message.Usage `json:"usage,omitzero"`
	Format packed        `json:"format,omitempty"`
	Raw    []byte        `json:"raw,omitzero"`
	Edited bool          `json:"edited,omitempty"`
}

type packedPart struct {
	Kind      packed `json:"kind,omitempty"`
	Text      packed `json:"text,omitempty"`
	CallID    packed `json:"callId,omitempty"`
	Name      packed `json:"name,omitempty"`
	Args      packed `json:"args,omitempty"`
	IsError   bool   `json:"isError,omitempty"`
	Signature packed `json:"signature,omitempty"`
	Raw       []byte `json:"raw,omitzero"`
}

// packMessage returns m as it is written.
func packMessage(m message.Message) packedMessage {
	p := packedMessage{
		Role: packed(m.Role), Time: m.Time, ID: packed(m.ID), Key: packed(m.Key), Name: packed(m.Name),
		Stop: packed(m.Stop), Type: packed(m.Type), Usage: m.Usage, Format: packed(m.Format), Raw: m.Raw, Edited: m.Edited,
	}
	if m.Parts != nil {
		p.Parts = make([]packedPart, len(m.Parts))
	}
	for i, x := range m.Parts {
		p.Parts[i] = packedPart{
			Kind: packed(x.Kind), Text: packed(x.Text), CallID: packed(x.CallID), Name: packed(x.Name),
			Args: packed(x.Args), IsError: x.IsError, Signature: packed(x.Signature), Raw: x.Raw,
		}
	}
	return p
}

// decodeMessage reads a message as the first version of the metadata has it.
func decodeMessage(text string) (message.Message, error) {
	var p packedMessage
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return message.Message{}, err
	}
	return p.message(), nil
}

// message undoes packMessage.
func (p packedMessage) message() message.Message {
	m := message.Message{
		Role: message.Role(p.Role), Time: p.Time, ID: string(p.ID), Key: string(p.Key), Name: string(p.Name),
		Stop: string(p.Stop), Type: string(p.Type), Usage: p.Usage, Format: string(p.Format), Raw: p.Raw, Edited: p.Edited,
	}
	if p.Parts != nil {
		m.Parts = make([]message.Part, len(p.Parts))
	}
	for i, x := range p.Parts {
		m.Parts[i] = message.Part{
			Kind: message.Kind(x.Kind), Text: string(x.Text), CallID: string(x.CallID), Name: string(x.Name),
			Args: string(x.Args), IsError: x.IsError, Signature: string(x.Signature), Raw: x.Raw,
		}
	}
	return m
}
