package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/engine"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/window"
)

// overwrite changes everything that can be reached from a value and written to: elements of slices and maps, and what pointers lead to.
func overwrite(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			overwrite(v.Elem())
		}
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				overwrite(f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			elem := reflect.New(v.Type().Elem()).Elem()
			elem.Set(v.MapIndex(key))
			overwrite(elem)
			v.SetMapIndex(key, elem)
		}
	case reflect.String:
		v.SetString("FORGED")
	case reflect.Int, reflect.Int64:
		v.SetInt(v.Int() + 7)
	case reflect.Uint8:
		v.SetUint('!')
	default:
	}
}

// scribbler is a retriever, an observer and a compactor that does its work and, where told so, writes to all that it was given and to all that it handed over.
type scribbler struct {
	writes, late bool
	shorten      bool
	told         []string
}

func (s *scribbler) over(p any) {
	if s.writes {
		overwrite(reflect.ValueOf(p))
	}
}

func (s *scribbler) Retrieve(_ context.Context, q core.Query) ([]core.Candidate, error) {
	s.over(&q)
	return nil, nil
}

func (s *scribbler) Late(q core.Query) bool {
	s.over(&q)
	return s.late
}

func (s *scribbler) Appended(_ context.Context, entries []core.Entry) error {
	for i := range entries {
		s.told = append(s.told, entries[i].Message.Text())
	}
	s.over(&entries)
	return nil
}

func (s *scribbler) Updated(_ context.Context, entry core.Entry) error {
	s.over(&entry)
	return nil
}

func (s *scribbler) Deleted(_ context.Context, _ core.Scope, ids []string) error {
	s.told = append(s.told, fmt.Sprint(len(strings.Join(ids, "")), " bytes of ids deleted"))
	s.over(&ids)
	return nil
}

func (*scribbler) OwnsCompaction() bool { return true }

// Compact shortens the oldest message that is not protected, publishes a summary of two, and leaves the rest to the engine.
func (s *scribbler) Compact(ctx context.Context, c core.Compaction) (core.Patch, error) {
	var patch core.Patch
	switch free := len(c.Entries) - c.Protected; {
	case s.shorten && free > 0:
		patch.Stubs = map[string]window.Stub{c.Entries[0].ID: {Kind: window.Clipped, Texts: map[int]string{0: "shortened"}}}
	case free > 2:
		patch.Replace = []core.Replacement{{Kind: "summary", Text: "in short", Entries: entryIDs(c.Entries[:2])}}
		for _, sum := range c.Summaries {
			patch.Replace[0].Summaries = append(patch.Replace[0].Summaries, sum.ID)
		}
	}
	publish := c.Publish
	s.over(&c)
	err := publish(ctx, patch)
	s.over(&patch)
	return core.Patch{}, err
}

// TestPartsThatWrite: what a part writes to what it was given, or to what it handed over, changes neither the window nor what other parts are told, nor what the
// host handed over.
func TestPartsThatWrite(t *testing.T) {
	hosted := func(i int) message.Message {
		m := user(fmt.Sprintf("line %d says one two three four five six seven eight", i))
		if i%2 == 1 {
			m.Role = message.Assistant
		}
		m.Raw = fmt.Appendf(nil, `{"role":%q,"content":[{"type":"text","text":%q}]}`, m.Role, m.Text())
		m.Parts[0].Raw = fmt.Appendf(nil, `{"type":"text","text":%q}`, m.Text())
		return m
	}
	run := func(t *testing.T, writes bool) (seen, told []string) {
		t.Helper()
		first, before, second := &scribbler{writes: writes, late: true}, &scribbler{writes: writes}, &scribbler{}
		f := newFixture(t, func(c *engine.Config, p *engine.Parts) {
			c.Recall.Share, c.RecentMessages = 0.3, 4
			p.Retriever, p.Compactor, p.Observers = first, first, []core.Observer{before, second}
		})
		var host []message.Message
		look := func() {
			t.Helper()
			for range 2 {
				res := f.assemble(220, func(r *core.AssembleRequest) { r.PromptMode, r.Prompt = core.PromptFull, "what was it?" })
				for _, m := range res.Messages {
					seen = append(seen, fmt.Sprintf("%s %s %s %s", m.Role, m.Text(), m.Raw, m.Parts[0].Raw))
				}
				seen = append(seen, fmt.Sprint(res.EstimatedTokens, res.Warnings))
			}
		}
		for i := range 40 {
			host = append(host, hosted(i))
			f.ingest(host[i])
			if i%8 == 7 {
				look()
			}
		}
		for _, first.shorten = range []bool{true, false, true, false} {
			said := &core.Transcript{Messages: host}
			res, err := f.engine.Compact(t.Context(), core.CompactRequest{Session: f.id, Budget: 220, Force: true, Transcript: said})
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, fmt.Sprint(res.OK, res.Compacted, res.TokensBefore, res.TokensAfter, res.Reason, res.Summary, said.Skipped))
			look()
		}
		f.forget(engine.ForgetRequest{Scope: f.id.Scope(), Entries: []string{f.entry("line 1 ").ID, f.entry("line 37").ID}})
		look()
		f.restart()
		look()
		for _, m := range host {
			seen = append(seen, fmt.Sprintf("%s %s %s", m.Text(), m.Raw, m.Parts[0].Raw))
		}
		return seen, second.told
	}
	wantSeen, wantTold := run(t, false)
	seen, told := run(t, true)
	if diff := cmp.Diff(wantSeen, seen); diff != "" {
		t.Errorf("windows (-of a sound part +of one that writes):\n%s", diff)
	}
	if diff := cmp.Diff(wantTold, told); diff != "" || strings.Contains(strings.Join(told, " "), "FORGED") {
		t.Errorf("told to another observer (-want +got):\n%s", diff)
	}
}
