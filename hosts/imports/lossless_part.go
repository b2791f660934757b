package imports

import (
	"context"
	"database/sql"
	"encoding/json"
)

// storedPart is a part of a message as lossless-claw has it.
type storedPart struct {
	kind                 string
	text, callID, tool   sql.NullString
	input, output, extra sql.NullString
	meta                 partMeta
}

// partMeta is the JSON beside a part: the block as the host wrote it, and what the message said beside its content.
type partMeta struct {
	Role       string          `json:"originalRole"`
	Raw        json.RawMessage `json:"raw"`
	RawType    string          `json:"rawType"`
	CallID     string          `json:"toolCallId"`
	Tool       string          `json:"toolName"`
	IsError    *bool           `json:"isError"`
	Command    string          `json:"command"`
	Provider   string          `json:"modelProvider"`
	API        string          `json:"modelApi"`
	Model      string          `json:"modelId"`
	Field      string          `json:"topLevelReasoningField"`
	Reasoning  string          `json:"topLevelReasoningContent"`
	Only       bool            `json:"topLevelReasoningOnly"`
	External   string          `json:"externalizedFileId"`
	ExternalIn []string        `json:"externalizedFileIds"`
}

// partsOf reads the parts of a message in their order.
func partsOf(ctx context.Context, q querier, n int64) ([]storedPart, error) {
	var out []storedPart
	var p storedPart
	err := each(ctx, q, `SELECT part_type, text_content, tool_call_id, tool_name, tool_input, tool_output, metadata
		FROM message_parts WHERE message_id = ? ORDER BY ordinal`, []any{n},
		[]any{&p.kind, &p.text, &p.callID, &p.tool, &p.input, &p.output, &p.extra}, func() error {
			p.meta = partMeta{}
			if p.extra.Valid && json.Unmarshal([]byte(p.extra.String), &p.meta) != nil {
				p.meta = partMeta{} // written by another version: the columns have the content
			}
			out = append(out, p)
			return nil
		})
	return out, err
}

// outside counts the parts whose content is in a file.
func outside(parts []storedPart) int {
	n := 0
	for _, p := range parts {
		if p.meta.External != "" || len(p.meta.ExternalIn) > 0 {
			n++
		}
	}
	return n
}
