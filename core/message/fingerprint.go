package message

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
)

// Fingerprint identifies what a message says, not how it is written: role, text, tool names, arguments and results.
// Ids, times, usage, thinking and white space at the ends are left out, because hosts change them between the
// call that stores a message and the call that hands it back; so is white space between the arguments of a call. One text and the same text in several
// parts, a newline between them, are the same. The
// order of arguments counts. Two messages that say the same thing ("ok", "ok") have the same fingerprint; position
// tells them apart. 32 hexadecimal digits.
func Fingerprint(m Message) string {
	size := 128
	for i := range m.Parts {
		p := &m.Parts[i]
		size += 32 + len(p.Text) + len(p.Name) + len(p.Args)
	}
	b := make([]byte, 0, size)
	b = appendFields(b, string(m.Role), m.Type)
	for i := 0; i < len(m.Parts); i++ {
		switch p := &m.Parts[i]; p.Kind {
		case Thinking:
		case Text:
			var text string
			if text, i = run(m.Parts, i); text != "" {
				b = appendFields(b, string(Text), text)
			}
		case ToolCall:
			b = appendFields(b, string(p.Kind), p.Name, compactArgs(p.Args))
		case ToolResult:
			b = appendFields(b, string(p.Kind), strings.TrimSpace(p.Text))
		default:
			b = appendLength(appendFields(b, string(p.Kind)), len(p.Raw))
			b = append(b, p.Raw...)
		}
	}
	return shortHash(b)
}

// run joins the texts of neighbouring parts, thinking between them aside, as formats do that know no blocks. It returns the index of the
// last part it took.
func run(parts []Part, i int) (text string, last int) {
	text, last = parts[i].Text, i
	for j := i + 1; j < len(parts); j++ {
		switch parts[j].Kind {
		case Thinking:
			continue
		case Text:
			text += "\n" + parts[j].Text
			last = j
			continue
		}
		return strings.TrimSpace(text), last
	}
	return strings.TrimSpace(text), last
}

// appendFields writes every field after its length, so that ("ab", "c") and ("a", "bc") differ.
func appendFields(b []byte, fields ...string) []byte {
	for _, f := range fields {
		b = append(appendLength(b, len(f)), f...)
	}
	return b
}

func appendLength(b []byte, n int) []byte {
	return append(b, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
}

// compactArgs takes the white space out of arguments that are valid JSON. Most have none, and cost nothing.
func compactArgs(args string) string {
	if !strings.ContainsAny(args, space) {
		return args
	}
	var b bytes.Buffer
	if json.Compact(&b, []byte(args)) != nil {
		return strings.TrimSpace(args)
	}
	return b.String()
}

func shortHash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// Digest is the running digest of a list of messages: the digest of n+1 messages follows from the digest of the
// first n and the fingerprint of the last. The digest of no messages is "".
type Digest string

// Add returns the digest of the list that d stands for, followed by a message with this fingerprint.
func (d Digest) Add(fingerprint string) Digest {
	b := make([]byte, 0, 128)
	b = append(b, d...)
	b = append(b, 0)
	b = append(b, fingerprint...)
	return Digest(shortHash(b))
}

// DigestOf returns the digest of messages.
func DigestOf(messages []Message) Digest {
	var d Digest
	for i := range messages {
		d = d.Add(Fingerprint(messages[i]))
	}
	return d
}
