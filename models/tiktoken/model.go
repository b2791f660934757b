package tiktoken

import "strings"

// ForModel returns the encoding of an OpenAI model: o200k_base for the gpt-4o, gpt-4.x, gpt-5, o1, o3 and o4
// families, cl100k_base for gpt-4, gpt-3.5 and the text-embedding-3 and ada-002 embeddings. Case, a provider in front
// ("openai/gpt-4o") and a fine-tuning suffix ("ft:gpt-4o:...") do not matter. For any other model ok is false, and the
// caller chooses: DefaultEncoding and a reserve.
func ForModel(model string) (encoding string, ok bool) {
	name := strings.ToLower(strings.TrimSpace(model))
	name = name[strings.LastIndexByte(name, '/')+1:]
	name = strings.TrimPrefix(name, "ft:")
	for _, family := range [...]struct {
		name, encoding string
		open           bool // anything may follow the name, not only a suffix after '-', ':' or '.'
	}{
		{"gpt-4o", DefaultEncoding, true},
		{"chatgpt-4o", DefaultEncoding, true},
		{"gpt-4.", DefaultEncoding, true},
		{"gpt-5", DefaultEncoding, false},
		{"o1", DefaultEncoding, false},
		{"o3", DefaultEncoding, false},
		{"o4", DefaultEncoding, false},
		{"gpt-4", cl100k, false},
		{"gpt-3.5", cl100k, true},
		{"gpt-35", cl100k, true}, // as some gateways spell it, which allow no dot
		{"text-embedding-3", cl100k, false},
		{"text-embedding-ada-002", cl100k, false},
	} {
		if rest, found := strings.CutPrefix(name, family.name); found &&
			(family.open || rest == "" || strings.ContainsRune("-:.", rune(rest[0]))) {
			return family.encoding, true
		}
	}
	return "", false
}
