package history

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextengine/contextengine/core/nearest"
)

// ErrUnknownProvider is wrapped by PolicyFor's error.
var ErrUnknownProvider = errors.New("unknown provider")

// The provider families, as in Policy.Provider.
const (
	ProviderNone            = "none"
	ProviderOpenAI          = "openai"
	ProviderOpenAIResponses = "openai-responses"
	ProviderAnthropic       = "anthropic"
	ProviderGoogle          = "google"
	ProviderMistral         = "mistral"
)

// The values of Policy.SanitizeCallIDs besides "", which leaves ids alone.
const (
	// IDsStrict: at most 40 letters and digits.
	IDsStrict = "strict"
	// IDsStrict9: exactly 9 letters and digits.
	IDsStrict9 = "strict9"
)

// Policy says which rules apply; PolicyFor gives the usual ones of a provider. The zero Policy asks for nothing.
// AllowedTools is only read.
type Policy struct {
	// Provider is the family the policy was made for. No rule looks at it.
	Provider string
	// Clean turns on what holds for every provider: no blank parts, no empty messages, no silent replies, no
	// invalid tool calls. See Sanitize.
	Clean bool
	// FilterHeartbeats lets Apply take acknowledged heartbeats out.
	FilterHeartbeats bool
	// RepairPairs keeps every tool call together with exactly one result. See RepairPairs.
	RepairPairs bool
	// SyntheticResults answers a call whose result is missing with an error result (NoResult). Without it RepairPairs
	// takes such calls out.
	SyntheticResults bool
	// SanitizeCallIDs is "", IDsStrict or IDsStrict9. See RewriteCallIDs.
	SanitizeCallIDs string
	// KeepNativeIDs leaves Anthropic's own ids ("toolu_...") alone when ids are sanitized.
	KeepNativeIDs bool
	// PreserveSignatures is for providers that verify signed thinking: thinking without a signature is taken out,
	// and so is thinking from before the host's newest compaction unless it is in the newest turn.
	PreserveSignatures bool
	// Base64Signatures removes signatures that are not base64; the thinking stays.
	Base64Signatures bool
	// DropReasoning takes thinking out of all turns but the newest.
	DropReasoning bool
	// DropThinking is the host's rule to keep thinking in the latest assistant message only. To depend on nothing but
	// the turn it ends where DropReasoning ends; both names exist so that a host's policy carries over.
	DropThinking bool
	// ValidateGemini merges consecutive assistant messages.
	ValidateGemini bool
	// ValidateAnthropic merges consecutive assistant messages and consecutive user messages, and strips calls that no
	// result answers before the next assistant message.
	ValidateAnthropic bool
	// MergeUserTurns also merges a tool message with tool and user messages that follow it, results first, because all
	// of them are user messages on Anthropic's wire. It has no effect on a history that contains messages of a
	// format that writes one message per result (OpenAI, pi): there the host's adapter does it.
	MergeUserTurns bool
	// AssistantFirstFix puts a user message in front of a history that begins with the assistant.
	AssistantFirstFix bool
	// AllowedTools limits tool calls to these names; empty allows all. A call that has its result stays.
	AllowedTools []string
}

// family lists the accepted names of each provider family, the family's own name first.
var families = [...][]string{
	{ProviderNone, ""},
	{
		ProviderOpenAI, "openai-completions", "azure-openai", "cerebras", "deepseek", "fireworks", "github-copilot", "groq", "kimi", "lmstudio", "moonshot", "moonshotai", "ollama", "together",
		"vllm", "xai",
	},
	{ProviderOpenAIResponses},
	{ProviderAnthropic, "bedrock", "amazon-bedrock", "vertex", "anthropic-vertex"},
	{ProviderGoogle, "gemini", "google-vertex"},
	{ProviderMistral, "mistralai"},
}

// routers pass on what the providers of many models answer, with the family whose rules hold where the model's name says nothing.
var routers = map[string]string{
	"cloudflare-ai-gateway": ProviderOpenAI, "kilocode": ProviderOpenAI, "litellm": ProviderOpenAI, "opencode": ProviderOpenAI, "openrouter": ProviderOpenAI,
	"vercel-ai-gateway": ProviderOpenAI, "bedrock": ProviderAnthropic, "amazon-bedrock": ProviderAnthropic, "vertex": ProviderAnthropic, "google-vertex": ProviderGoogle,
}

// modelFamilies are the beginnings of models' names, with whose rules they are answered.
var modelFamilies = [...]struct {
	family string
	names  []string
}{
	{ProviderAnthropic, []string{"claude"}},
	{ProviderGoogle, []string{"gemini"}},
	{ProviderMistral, []string{"codestral", "devstral", "magistral", "ministral", "mistral", "mixtral", "open-mistral", "open-mixtral", "pixtral"}},
	{ProviderOpenAI, []string{"chatgpt", "deepseek", "glm", "gpt", "grok", "kimi", "llama", "o1", "o3", "o4", "qwen"}},
}

// Providers returns the names that PolicyFor knows, aliases included, in alphabetical order; "" is not listed.
func Providers() []string {
	var out []string
	for _, names := range families {
		for _, n := range names {
			if n != "" {
				out = append(out, n)
			}
		}
	}
	slices.Sort(out)
	return out
}

// PolicyFor returns the usual policy of a provider. "" and "none" only repair tool pairs. The error for another name
// wraps ErrUnknownProvider, lists the known names and says which one is nearest.
func PolicyFor(provider string) (Policy, error) {
	family := ""
	for _, names := range families {
		if slices.Contains(names, provider) {
			family = names[0]
			break
		}
	}
	p := Policy{Provider: family, RepairPairs: true, SyntheticResults: true}
	if family != ProviderNone {
		p.Clean, p.FilterHeartbeats, p.SanitizeCallIDs = true, true, IDsStrict
	}
	switch family {
	case ProviderNone, ProviderOpenAIResponses:
	case ProviderOpenAI, ProviderMistral:
		if family == ProviderMistral {
			p.SanitizeCallIDs = IDsStrict9
		}
		p.DropReasoning = true
		p.ValidateGemini, p.ValidateAnthropic, p.AssistantFirstFix = true, true, true
	case ProviderAnthropic:
		p.KeepNativeIDs, p.PreserveSignatures = true, true
		p.ValidateAnthropic, p.MergeUserTurns = true, true
		// A window may begin at any group, and the provider wants a user message first.
		p.AssistantFirstFix = true
	case ProviderGoogle:
		p.Base64Signatures = true
		p.ValidateGemini, p.AssistantFirstFix = true, true
	default:
		known := Providers()
		return Policy{}, fmt.Errorf("history: policy for %q: %w: nearest is %q, known are %s",
			provider, ErrUnknownProvider, nearest.To(provider, known), strings.Join(known, ", "))
	}
	return p, nil
}

// PolicyForModel returns the usual policy of a provider for a model of its. A provider that passes on what others answer ("openrouter", "openrouter/anthropic",
// "bedrock"), or that has no rules here, has those of the model's family: "anthropic/claude-x", "us.anthropic.claude-x" and "claude-x" are Anthropic's. Capitals make no
// difference. With an error, which wraps ErrUnknownProvider, neither name says anything, and the policy only repairs tool pairs.
func PolicyForModel(provider, model string) (Policy, error) {
	provider = strings.ToLower(provider)
	router, vendor, _ := strings.Cut(provider, "/")
	otherwise, routes := routers[router]
	p, err := PolicyFor(provider)
	if err == nil && !routes {
		return p, nil
	}
	// The end of a name says more than its beginning.
	for _, name := range slices.Backward(strings.FieldsFunc(vendor+"/"+strings.ToLower(model), func(r rune) bool { return r == '/' || r == '.' })) {
		for _, f := range modelFamilies {
			if slices.ContainsFunc(f.names, func(begins string) bool { return strings.HasPrefix(name, begins) }) {
				return PolicyFor(f.family)
			}
		}
		if p, err := PolicyFor(name); err == nil {
			return p, nil
		}
	}
	if routes {
		return PolicyFor(otherwise)
	}
	least, _ := PolicyFor(ProviderNone)
	return least, err
}
