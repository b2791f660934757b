package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/core/upkeep"
	"github.com/contextengine/contextengine/core/vector"
)

// helperChecks hold the smaller companions of a store to their contracts.
func helperChecks() []Check {
	return []Check{
		{ID: "vector.nearest", Suite: SuiteStore, store: nearest, Needs: []Need{NeedVectorSearcher}, once: true,
			Rule: "a search by vector returns the nearest entries by cosine, each once, best first, ties to the more recent one, then to the smaller id, within what the query asks for, and with the entries as they are stored now"},
		{ID: "beside.folder", Promise: 8, Suite: SuiteStore, store: besideFolder, Needs: []Need{NeedBeside}, once: true,
			Rule: "the folder beside a store is there, the same each time, another for each use and each store, closed to others, and no use leads out of it"},
		{ID: "beside.reopen", Suite: SuiteStore, store: besideReopen, Needs: []Need{NeedBeside, NeedReopen}, once: true,
			Rule: "the folder beside a store is the same after it was closed and opened again, with what lies in it; without the folder the store is whole"},
		{ID: "scrub.keeps", Promise: 2, Suite: SuiteStore, store: scrubKeeps, Needs: []Need{NeedScrubber}, once: true,
			Rule: "a scrub takes nothing but what was erased: entries, views and vectors stay, and what is written meanwhile, also after the store was opened again"},
		{ID: "scrub.gone", Promise: 2, Suite: SuiteStore, store: scrubGone, Needs: []Need{NeedScrubber, NeedMedia}, once: true,
			Rule: "after a scrub no byte of what was erased before, in whatever way, is on the store's media, also where the store was opened again since, a scrub was broken off, or another opening erased it"},
		{ID: "erase.session", Promise: 2, Suite: SuiteStore, store: eraseSession, Needs: []Need{NeedSessionEraser}, once: true,
			Rule: "erasing a session leaves nothing of it, what was emptied and vectors included, and all of the others, which a change feed tells; one that is not there is no error, none at all is ErrInvalid"},
		{ID: "erase.long", Promise: 2, Suite: SuiteStore, store: eraseLong, Needs: []Need{NeedSessionEraser}, once: true,
			Rule: "a session of more entries than a page holds goes whole"},
		{ID: "repair.keeps", Promise: 2, Suite: SuiteStore, store: repairKeeps, Needs: []Need{NeedRepairer}, once: true,
			Rule: "a repair of a store that is whole changes nothing, makes no copy and says so: entries, views and vectors stay"},
		{ID: "recognise.says", Promise: 6, Suite: SuiteStore, store: recogniseSays, Needs: []Need{NeedRecogniser}, once: true,
			Rule: "an entry that says what a message says is shown by Scan or recognised, and what is recognised is a stored entry of that session that says one of the messages, also after it was changed, emptied or deleted"},
		{ID: "drain.delivers", Promise: 2, Suite: SuiteStore, store: drainDelivers, Needs: []Need{NeedDrainer}, once: true,
			Rule: "a drain ends with nothing left and no error, the backlog says the same, and everything is still there"},
		{ID: "drain.ends", Promise: 9, Suite: SuiteStore, store: drainEnds, Needs: []Need{NeedDrainer}, once: true, plain: true,
			Rule: "a drain of many changes whose context ends meanwhile stops soon, between two of them, says how many are left and why, and another one delivers those"},
		{ID: "late.asked", Suite: SuiteStore, store: lateAsked, Needs: []Need{NeedLateSearcher}, once: true,
			Rule: "nothing is late for a query that was never searched, and another search has what was late, also after one that was broken off"},
	}
}

// helperCalls adds the calls of the smaller companions.
func (r *storeRun) helperCalls(e core.Entry, out map[string]func(context.Context) error) {
	id := e.SessionID()
	if s, ok := core.As[vector.Searcher](r.store); ok {
		out["SearchVectors"] = func(ctx context.Context) error {
			_, err := s.SearchVectors(ctx, "space/2", []float32{1, 0}, core.SearchQuery{Scope: id.Scope(), Limit: 3})
			return err
		}
	}
	if s, ok := core.As[upkeep.Scrubber](r.store); ok {
		out["Scrub"] = s.Scrub
	}
	if s, ok := core.As[core.SessionEraser](r.store); ok {
		out["EraseSession"] = func(ctx context.Context) error { return s.EraseSession(ctx, id) }
	}
	if s, ok := core.As[core.Recogniser](r.store); ok {
		out["Recognise"] = func(ctx context.Context) error {
			_, err := s.Recognise(ctx, id, []message.Message{e.Message})
			return err
		}
		out["Recognise of nothing"] = func(ctx context.Context) error {
			_, err := s.Recognise(ctx, id, nil)
			return err
		}
	}
	if s, ok := core.As[upkeep.Repairer](r.store); ok {
		out["Repair"] = func(ctx context.Context) error {
			_, err := s.Repair(ctx)
			return err
		}
	}
	if d, ok := core.As[upkeep.Drainer](r.store); ok {
		out["Drain"] = func(ctx context.Context) error {
			if left, err := d.Drain(ctx); left > 0 || err != nil {
				return err
			}
			return ctx.Err() // nothing was left to do, so that it made no difference
		}
	}
	if b, ok := core.As[upkeep.Backlogger](r.store); ok {
		out["Backlog"] = func(ctx context.Context) error {
			_, err := b.Backlog(ctx)
			return err
		}
		out["CheckRemote"] = b.CheckRemote
	}
	if p, ok := core.As[core.Pinger](r.store); ok {
		out["Ping"] = p.Ping
	}
}

func besideFolder(r *storeRun) string {
	b, _ := core.As[core.Beside](r.store)
	seen := map[string]string{}
	for _, use := range []string{"index", "Vectors9", "x", "Index", "X", "index", strings.Repeat("u", 64), strings.Repeat("u", 63)} {
		r.watch.beat()
		dir, err := b.Beside(use)
		if unsupported(err) {
			return ""
		}
		if err != nil {
			return fmt.Sprintf("Beside(%q): error %v, want none", use, err)
		}
		info, err := os.Stat(dir)
		if err != nil || !info.IsDir() {
			return fmt.Sprintf("Beside(%q): %q is no folder (%v)", use, dir, err)
		}
		if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			return fmt.Sprintf("Beside(%q): others may read the folder, its mode is %v", use, info.Mode().Perm())
		}
		if before, ok := seen[use]; ok && before != dir {
			return fmt.Sprintf("Beside(%q): %q, then %q", use, before, dir)
		}
		for other, at := range seen {
			if other != use && (within(dir, at) || within(at, dir)) {
				return fmt.Sprintf("the folders for %q and %q are not apart: %q and %q", use, other, dir, at)
			}
		}
		seen[use] = dir
		if err := os.WriteFile(filepath.Join(dir, "kept"), []byte(use), 0o600); err != nil {
			return fmt.Sprintf("Beside(%q): nothing can be written there: %v", use, err)
		}
	}
	for use, dir := range seen {
		if got, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(got) != use {
			return fmt.Sprintf("what lies in the folder for %q is %q (%v)", use, got, err)
		}
	}
	if text := r.besideAnother(seen); text != "" {
		return text
	}
	if err := os.RemoveAll(seen["x"]); err != nil {
		return fmt.Sprintf("the folder cannot be deleted: %v", err)
	}
	if dir, err := b.Beside("x"); err != nil {
		return fmt.Sprintf("Beside of a folder that was deleted: error %v, want it made again", err)
	} else if _, err := os.Stat(dir); err != nil {
		return fmt.Sprintf("Beside of a folder that was deleted: %v", err)
	}
	refused := []string{"", ".", "..", "../x", "é", "a٣", "ａ", "a\n", strings.Repeat("a", 65)}
	for c := range rune(utf8.RuneSelf) {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			refused = append(refused, "a"+string(c)+"b")
		}
	}
	for _, use := range append(refused, "-", "a-") {
		if dir, err := b.Beside(use); !errors.Is(err, core.ErrInvalid) {
			return fmt.Sprintf("Beside(%q): %q, error %v, want ErrInvalid", use, dir, err)
		}
	}
	if err := r.store.Close(); err != nil {
		return fmt.Sprintf("Close: error %v, want none", err)
	}
	if _, decorates := r.store.(core.Unwrapper); decorates {
		return ""
	}
	if dir, err := b.Beside("index"); !errors.Is(err, core.ErrClosed) {
		return fmt.Sprintf("Beside after Close: %q, error %v, want ErrClosed", dir, err)
	}
	return ""
}

// besideAnother holds the folders of a store against those of another one.
func (r *storeRun) besideAnother(seen map[string]string) string {
	b, ok := core.As[core.Beside](r.open(r.tb))
	if !ok {
		return ""
	}
	for use, dir := range seen {
		other, err := b.Beside(use)
		if err != nil {
			return fmt.Sprintf("Beside(%q) of another store: error %v, want none", use, err)
		}
		if within(dir, other) || within(other, dir) {
			return fmt.Sprintf("Beside(%q): the folders of two stores are not apart: %q and %q", use, dir, other)
		}
		if _, err := os.Stat(filepath.Join(other, "kept")); err == nil {
			return fmt.Sprintf("Beside(%q): two stores share the folder %q", use, dir)
		}
	}
	return ""
}

// within reports whether a path is another one or lies in it.
func within(path, in string) bool {
	rel, err := filepath.Rel(in, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func besideReopen(r *storeRun) string {
	if text := r.fill(); text != "" {
		return text
	}
	b, _ := core.As[core.Beside](r.store)
	dir, err := b.Beside("index")
	if unsupported(err) {
		return ""
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "kept"), []byte("kept"), 0o600)
	}
	if err != nil {
		return fmt.Sprintf("Beside: error %v, want none", err)
	}
	r.store = r.reopen(r.tb, r.store)
	b, _ = core.As[core.Beside](r.store)
	again, err := b.Beside("index")
	if err != nil || again != dir {
		return fmt.Sprintf("after reopening: Beside is %q, error %v, was %q", again, err, dir)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(got) != "kept" {
		return fmt.Sprintf("after reopening: what lay in the folder is %q (%v)", got, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Sprintf("the folder cannot be deleted: %v", err)
	}
	if text := r.readAll(); text != "" {
		return "without the folder: " + text
	}
	if _, err := b.Beside("index"); err != nil {
		return fmt.Sprintf("Beside of a folder that was deleted: error %v, want it made again", err)
	}
	if _, err := os.Stat(dir); err != nil {
		return fmt.Sprintf("Beside of a folder that was deleted: %v", err)
	}
	return ""
}

// empty erases what an entry says; its place stays.
func (r *storeRun) empty(e core.Entry) string {
	m := message.New(e.Role, "")
	change := core.Change{Message: &m, Fingerprint: "x", Type: core.TypeErased, Key: "x:" + e.ID, Meta: map[string]string{}}
	if err := r.store.Update(r.ctx(), e.SessionID().Scope(), e.ID, change); err != nil {
		return fmt.Sprintf("Update(%q): error %v, want none", e.ID, err)
	}
	return ""
}

// eachType appends entries that are no messages, of each type, to every session.
func (r *storeRun) eachType() string {
	for _, kind := range []core.EntryType{core.TypeHeartbeat, core.TypeSummary, core.TypeSubagent} {
		b := r.make(ordinary(3))
		for i := range b {
			b[i].Type = kind
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries(b)); err != nil {
			return fmt.Sprintf("Append of entries of type %q: error %v, want none", kind, err)
		}
		r.remember(b)
	}
	return ""
}

// embeds stores vectors for all entries where the store keeps some, which it then returns.
func (r *storeRun) embeds() ([]vector.Vector, vector.Store, string) {
	v, ok := core.As[vector.Store](r.store)
	if !ok {
		return nil, nil, ""
	}
	if _, err := v.VectorSpaces(r.ctx(), ""); unsupported(err) {
		return nil, nil, ""
	}
	vectors, text := r.embedded(v, "one/3")
	return vectors, v, text
}

func recogniseSays(r *storeRun) string {
	s, _ := core.As[core.Recogniser](r.store)
	r.steps = append(r.steps, ordinary(9))
	if text := r.fill(); text != "" {
		return text
	}
	nobody := message.New(message.User, "nobody ever said this, not in any session")
	for who := range 3 {
		id := sessionOf(who)
		own := r.in(id.Scope())
		asked := map[string]bool{}
		var messages []message.Message
		for i, e := range own {
			if i%2 == 0 {
				messages = append(messages, cloneEntries([]core.Entry{e})[0].Message)
				asked[message.Fingerprint(e.Message)] = true
			}
		}
		// What others said, and nobody, is not recognised, nor what was said in another role.
		given := append(slices.Clone(messages), nobody, message.New(message.User, ""))
		for i, e := range own {
			if i%2 == 1 {
				m := message.New(message.Assistant, e.Text())
				if e.Role == message.Assistant {
					m.Role = message.User
				}
				given = append(given, m)
			}
		}
		for _, e := range cloneEntries(r.all) {
			if e.SessionID() != id && !asked[message.Fingerprint(e.Message)] {
				given = append(given, e.Message)
			}
		}
		got, err := s.Recognise(r.ctx(), id, given)
		if unsupported(err) {
			return ""
		}
		if err != nil {
			return fmt.Sprintf("Recognise of %d messages in session %s: error %v, want none", len(given), id, err)
		}
		said := map[string]bool{}
		for _, e := range got {
			i := slices.IndexFunc(own, func(o core.Entry) bool { return o.ID == e.ID })
			if i < 0 {
				return fmt.Sprintf("Recognise in session %s returned %q of session %s, which is none of its entries", id, e.ID, e.SessionID())
			}
			if d := sameEntry(e, own[i]); d != "" {
				return "Recognise: " + d
			}
			fp := message.Fingerprint(e.Message)
			if said[fp] = true; !slices.ContainsFunc(given, func(m message.Message) bool { return message.Fingerprint(m) == fp }) {
				return fmt.Sprintf("Recognise returned %q, which says none of the messages", e.ID)
			}
		}
		spoilt(got)
		spoilt(given)
		text := r.settled(func() string {
			shown, text := r.scan(core.ScanQuery{Scope: id.Scope(), Limit: 100})
			for _, e := range own {
				if text == "" && asked[message.Fingerprint(e.Message)] && !said[message.Fingerprint(e.Message)] && !slices.Contains(idsOf(shown), e.ID) {
					text = fmt.Sprintf("%q is neither shown by Scan nor recognised", e.ID)
				}
			}
			return text
		})
		if text != "" {
			return text
		}
	}
	if text := r.recognisesChanged(s); text != "" {
		return text
	}
	got, err := s.Recognise(r.ctx(), sessionOf(0), nil)
	if err != nil || len(got) > 0 {
		return fmt.Sprintf("Recognise of no message: %d entries, error %v, want none", len(got), err)
	}
	return r.readAll()
}
