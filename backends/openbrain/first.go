package openbrain

import (
	"encoding/json"
	"time"
)

// The keys of the first version of the metadata that the second does not have. There, metadata.id was the entry's.
const (
	firstMetadataID  = "metadata_id"
	firstKey         = "key"
	firstTokens      = "tokens"
	firstTime        = "time"
	firstFingerprint = "fingerprint"
	firstMessage     = "message"
	firstMeta        = "meta"
	firstBatch       = "batch"
	firstBatchIndex  = "batchIndex"
	firstBatchEnd    = "batchEnd"
)

var firstKeys = [...]string{
	firstMetadataID, firstKey, firstTokens, firstTime, firstFingerprint, firstMessage, firstMeta, firstBatch, firstBatchIndex, firstBatchEnd,
}

// readFirst takes from metadata of the first version what is not the document's.
func (r *record) readFirst(f *fields) bool {
	e := &r.entry
	e.ID, e.Seq, e.Tokens = f.unpacked(keyID), f.int(keySeq), int(f.int(firstTokens))
	e.Key, e.Fingerprint = f.unpacked(firstKey), f.unpacked(firstFingerprint)
	var err error
	if e.Time, err = time.Parse(time.RFC3339Nano, f.text(firstTime)); err != nil {
		return false
	}
	e.Time = e.Time.UTC()
	if e.Message, err = decodeMessage(f.text(firstMessage)); err != nil {
		return false
	}
	f.optional = true
	if e.Meta, err = decodeMeta(f.text(firstMeta)); err != nil {
		return false
	}
	r.batch = batch{ID: f.text(firstBatch), Index: int(f.int(firstBatchIndex)), End: f.bool(firstBatchEnd)}
	return true
}

// decodeMeta reads Entry.Meta as the first version of the metadata has it.
func decodeMeta(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	var p map[string]packed
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return nil, err
	}
	meta := make(map[string]string, len(p))
	for k, v := range p {
		key, err := unpack(k)
		if err != nil {
			return nil, err
		}
		meta[key] = string(v)
	}
	return meta, nil
}
