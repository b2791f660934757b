package openbrain

import (
	"bytes"
	"compress/flate"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// blob is what of an entry the document's keys do not hold. It travels compressed and in base64: a server that reorders JSON or refuses NUL
// cannot change it, and a thought stays small.
type blob struct {
	Seq         int64             `json:"seq"`
	Key         packed            `json:"key"`
	Tokens      int               `json:"tokens"`
	Time        time.Time         `json:"time"`
	Fingerprint *packed           `json:"fingerprint,omitempty"` // nil: that of the message
	Meta        map[string]packed `json:"meta,omitzero"`
	Batch       string            `json:"batch,omitempty"`
	BatchIndex  int               `json:"batchIndex,omitempty"`
	BatchEnd    bool              `json:"batchEnd,omitempty"`
	// Raw is the message as the host wrote it, nil where there is none. Before the parts, which repeat it.
	Raw *packed `json:"raw,omitempty"`
	// Derived says that the parts are those that the format's codec reads from Raw.
	Derived bool          `json:"derived,omitempty"`
	Message packedMessage `json:"message"`
}

// blobDictionary holds what nearly every blob repeats: most messages are short.
const blobDictionary = `"thinking":"","thinkingSignature":"","textSignature":"","toolCallId":"","toolName":"","isError":false,"details":{},"arguments":{` +
	`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},"totalTokens":"responseId":""api":"openai-completions","provider":"","model":"` +
	`"stopReason":"stop""toolUse","usage":{"input":,"output":,"cacheRead":,"cacheWrite":},"timestamp":17` +
	`{"seq":,"key":"","tokens":,"time":"2026-","fingerprint":"","meta":{"},"batch":"","batchIndex":,"batchEnd":true,"raw":"{\"role\":\"` +
	`assistant\",\"content\":[{\"type\":\"text\",\"text\":\"\"}],\"timestamp\":{\"type\":\"toolCall\",\"id\":\"call_\",\"name\":\"\",\"arguments\":{\"` +
	`toolResult\",\"toolCallId\":\"\",\"toolName\":\"\",\"isError\":false,\"stopReason\":\"stop\",\"usage\":{\"input\":,\"output\":,\"cacheRead\":0,\"cacheWrite\":0,` +
	`\"totalTokens\":,\"cost\":{\"input\":0,\"output\":0,\"total\":0}}}","derived":true,"message":{"role":"user","parts":[{"kind":"text","text":"` +
	`"}],"time":"2026-","stop":"stop","usage":{"input":,"output":},"format":"pi"}}`

// blobWriters and blobReaders are those that wait for the next blob: making them anew took four tenths of an append, and nine of its memory.
var blobWriters, blobReaders sync.Pool

// maxBlob bounds what a blob may unpack to.
const maxBlob = 4 * maxBody

// encodeBlob returns a record's blob as text.
func encodeBlob(r record) (string, error) {
	e := r.entry
	b := blob{
		Seq: e.Seq, Key: packed(e.Key), Tokens: e.Tokens, Time: e.Time.UTC(), Message: packMessage(e.Message),
		Batch: r.batch.ID, BatchIndex: r.batch.Index, BatchEnd: r.batch.End,
	}
	if e.Fingerprint != message.Fingerprint(e.Message) {
		b.Fingerprint = new(packed(e.Fingerprint))
	}
	if e.Meta != nil {
		b.Meta = make(map[string]packed, len(e.Meta))
		for k, v := range e.Meta {
			b.Meta[pack(k)] = packed(v) // encoding/json does not ask string keys how they marshal
		}
	}
	if e.Message.Raw != nil {
		b.Raw, b.Message.Raw = new(packed(e.Message.Raw)), nil
	}
	if parts, ok := derivedParts(e.Message.Format, e.Message.Raw); ok && reflect.DeepEqual(parts, e.Message.Parts) {
		b.Derived, b.Message.Parts = true, nil
	}
	var out strings.Builder
	text := base64.NewEncoder(base64.RawStdEncoding, &out)
	z, _ := blobWriters.Get().(*flate.Writer)
	if z == nil {
		var err error
		if z, err = flate.NewWriterDict(text, flate.DefaultCompression, []byte(blobDictionary)); err != nil {
			return "", err
		}
	} else {
		z.Reset(text) // to what it was made with, the dictionary too
	}
	defer blobWriters.Put(z)
	enc := json.NewEncoder(z)
	enc.SetEscapeHTML(false)
	if err := errors.Join(enc.Encode(b), z.Close(), text.Close()); err != nil {
		return "", fmt.Errorf("message cannot be written as JSON, a time may be out of range: %w", core.ErrInvalid)
	}
	return out.String(), nil
}

// derivedParts returns what the codec of a format reads from a message's own bytes.
func derivedParts(format string, raw []byte) ([]message.Part, bool) {
	if raw == nil || format == "" {
		return nil, false
	}
	codec, err := message.Lookup(format)
	if err != nil {
		return nil, false
	}
	m, err := codec.Decode(raw)
	return m.Parts, err == nil
}

var errBlob = errors.New("openbrain: entry is not what was written")

// decodeBlob fills a record from its blob.
func decodeBlob(text string, r *record) error {
	from := base64.NewDecoder(base64.RawStdEncoding, strings.NewReader(text))
	z, _ := blobReaders.Get().(io.Reader)
	if z == nil {
		z = flate.NewReaderDict(from, []byte(blobDictionary))
	} else if err := z.(flate.Resetter).Reset(from, []byte(blobDictionary)); err != nil { //nolint:forcetypeassert // what flate returns is one
		return errBlob
	}
	defer blobReaders.Put(z)
	raw, err := io.ReadAll(io.LimitReader(z, maxBlob+1))
	if err != nil || len(raw) > maxBlob {
		return errBlob
	}
	var b blob
	if err := json.Unmarshal(bytes.TrimSpace(raw), &b); err != nil {
		return errBlob
	}
	e := &r.entry
	e.Seq, e.Key, e.Tokens, e.Time, e.Message = b.Seq, string(b.Key), b.Tokens, b.Time.UTC(), b.Message.message()
	r.batch = batch{ID: b.Batch, Index: b.BatchIndex, End: b.BatchEnd}
	if b.Raw != nil {
		e.Message.Raw = []byte(*b.Raw)
	}
	if b.Derived {
		var ok bool
		if e.Message.Parts, ok = derivedParts(e.Message.Format, e.Message.Raw); !ok {
			return errBlob
		}
	}
	e.Fingerprint = message.Fingerprint(e.Message)
	if b.Fingerprint != nil {
		e.Fingerprint = string(*b.Fingerprint)
	}
	if b.Meta != nil {
		e.Meta = make(map[string]string, len(b.Meta))
		for k, v := range b.Meta {
			name, err := unpack(k)
			if err != nil {
				return errBlob
			}
			e.Meta[name] = string(v)
		}
	}
	return nil
}
