package rpc

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// Settings say what is known about the model run, as core.RuntimeSettings do. Zero values mean unknown.
type Settings struct {
	SchemaVersion     int                  `json:"schemaVersion,omitempty"`
	Provider          string               `json:"provider,omitempty"`
	Model             string               `json:"model,omitempty"`
	ModelFamily       string               `json:"modelFamily,omitempty"`
	RequestedModel    string               `json:"requestedModel,omitempty"`
	ResolvedModel     string               `json:"resolvedModel,omitempty"`
	ContextWindow     int                  `json:"contextWindow,omitempty"`
	MaxOutputTokens   int                  `json:"maxOutputTokens,omitempty"`
	PromptTokenBudget int                  `json:"promptTokenBudget,omitempty"`
	Mode              string               `json:"mode,omitempty"`
	FallbackReason    string               `json:"fallbackReason,omitempty"`
	DegradedReason    string               `json:"degradedReason,omitempty"`
	Host              string               `json:"host,omitempty"`
	HarnessID         string               `json:"harnessId,omitempty"`
	RuntimeID         string               `json:"runtimeId,omitempty"`
	EngineSelection   core.EngineSelection `json:"contextEngineSelection,omitzero"`
	ExecutionHost     core.ExecutionHost   `json:"executionHost,omitzero"`
}

func (s Settings) core(format string) core.RuntimeSettings {
	return core.RuntimeSettings{
		SchemaVersion: s.SchemaVersion, Provider: s.Provider, Model: s.Model, ModelFamily: s.ModelFamily, RequestedModel: s.RequestedModel,
		ResolvedModel: s.ResolvedModel, ContextWindow: s.ContextWindow, MaxOutputTokens: s.MaxOutputTokens, PromptTokenBudget: s.PromptTokenBudget,
		Mode: s.Mode, FallbackReason: s.FallbackReason, DegradedReason: s.DegradedReason, Host: s.Host, HarnessID: s.HarnessID, RuntimeID: s.RuntimeID,
		EngineSelection: s.EngineSelection, ExecutionHost: s.ExecutionHost, Format: format,
	}
}

// The longest name or code that a host gives, and the longest path, in bytes.
const (
	maxWord = 1024
	maxPath = 4096
)

// run checks what a host says about the run that a call belongs to, and hands on what engines are chosen by.
func (k *call) run(id core.SessionID, s Settings, t core.TranscriptScope) error {
	if err := s.check(); err != nil {
		return err
	}
	if told, ok := k.conn.s.engines.(Told); ok && s.Provider != "" {
		told.Provider(id, s.Provider)
	}
	return checkTexts(
		text{"transcriptScope.agentId", t.AgentID, maxWord}, text{"transcriptScope.sessionId", t.SessionID, maxWord}, text{"transcriptScope.path", t.Path, maxPath},
	)
}

// check refuses numbers and texts that no host means. Words that are not known pass: settings inform, and a host that has a new one is not to lose its call.
func (s Settings) check() error {
	for _, n := range []struct {
		field string
		value int
	}{
		{"schemaVersion", s.SchemaVersion}, {"contextWindow", s.ContextWindow}, {"maxOutputTokens", s.MaxOutputTokens}, {"promptTokenBudget", s.PromptTokenBudget},
	} {
		if n.value < 0 {
			return badField("settings."+n.field, "must not be negative")
		}
	}
	return checkTexts(
		text{"settings.provider", s.Provider, maxWord}, text{"settings.model", s.Model, maxWord}, text{"settings.modelFamily", s.ModelFamily, maxWord},
		text{"settings.requestedModel", s.RequestedModel, maxWord}, text{"settings.resolvedModel", s.ResolvedModel, maxWord},
		text{"settings.mode", s.Mode, maxWord}, text{"settings.fallbackReason", s.FallbackReason, maxWord},
		text{"settings.degradedReason", s.DegradedReason, maxWord}, text{"settings.host", s.Host, maxWord}, text{"settings.harnessId", s.HarnessID, maxWord},
		text{"settings.runtimeId", s.RuntimeID, maxWord}, text{"settings.contextEngineSelection.selectedId", s.EngineSelection.SelectedID, maxWord},
		text{"settings.contextEngineSelection.source", s.EngineSelection.Source, maxWord}, text{"settings.executionHost.id", s.ExecutionHost.ID, maxWord},
		text{"settings.executionHost.label", s.ExecutionHost.Label, maxWord},
	)
}

// text is a field that holds one.
type text struct {
	field, value string
	most         int
}

// checkTexts names the first field whose text is too long, or holds what no name does.
func checkTexts(texts ...text) error {
	for _, t := range texts {
		if len(t.value) > t.most {
			return badField(t.field, fmt.Sprintf("at most %d bytes", t.most))
		}
		if strings.ContainsRune(t.value, 0) {
			return badField(t.field, "must not contain NUL")
		}
	}
	return nil
}
