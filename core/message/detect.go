package message

import "cmp"

// detect names the format of a conversation by the first message that only one format can have written; hint is what
// the conversation looks like from outside.
func detect(items []item, hint string) string {
	fallback := cmp.Or(hint, FormatOpenAI)
	for _, i := range items {
		switch {
		case i.problem != nil:
			continue
		case i.entry:
			return FormatPi
		case i.system:
			fallback = FormatAnthropic
			continue
		}
		o, err := parseObject(i.raw)
		if err != nil {
			continue
		}
		if f := formatOf(o); f != "" {
			return f
		}
	}
	return fallback
}

// formatOf returns the only format that o can be a message of, or "".
func formatOf(o object) string {
	switch o.text("role") {
	case "toolResult", CompactionSummary, branchSummary, bashExecution, "custom":
		return FormatPi
	case "developer", "tool", "function":
		return FormatOpenAI
	}
	for _, f := range o.fields {
		switch f.key {
		case "stopReason":
			return FormatPi
		case "tool_calls", "function_call", "tool_call_id":
			return FormatOpenAI
		case "stop_reason":
			return FormatAnthropic
		}
	}
	raw := o.get("content")
	if kindOf(raw) != '[' {
		return ""
	}
	spans, _ := elements(raw)
	for _, s := range spans {
		b, err := parseObject(raw[s.at:s.end])
		if err != nil {
			continue
		}
		if f := formatOfBlock(b); f != "" {
			return f
		}
	}
	return ""
}

func formatOfBlock(b object) string {
	switch b.text("type") {
	case "toolCall":
		return FormatPi
	case "image_url", "input_audio", "refusal":
		return FormatOpenAI
	case "tool_use", "tool_result", "redacted_thinking", "document":
		return FormatAnthropic
	case "thinking":
		if b.get("thinkingSignature") != nil {
			return FormatPi
		}
		return FormatAnthropic
	case "image":
		if b.get("mimeType") != nil {
			return FormatPi
		}
		return FormatAnthropic
	}
	return ""
}
