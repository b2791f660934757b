package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/contextengine/contextengine/core/message"
)

// readTranscript imports a file of messages.
func readTranscript(ctx context.Context, src *source, in *intake) error {
	conversations, err := message.Read(bytes.NewReader(src.data), message.ReadOptions{
		Name: src.name, KeepGoing: in.o.KeepGoing, OnError: func(err error) { _ = in.skip(splitLineError(err)) },
	})
	if err != nil {
		if le, ok := errors.AsType[*message.LineError](err); ok {
			return in.skip(splitLineError(le))
		}
		return err
	}
	off := offPath(src.data)
	home := placeOf(src.name)
	for _, c := range conversations {
		in.total += len(c.Messages)
	}
	for i, c := range conversations {
		if len(c.Messages) == 0 {
			continue
		}
		p := home
		switch {
		case c.ID == "" || home.fixed:
		case c.Format == message.FormatPi && c.ID != strconv.Itoa(i):
			p.session = c.ID // hosts give their sessions ids that no other has
		default:
			p.session = home.session + "#" + c.ID
		}
		if err := readConversation(ctx, in, p.place, c, off); err != nil {
			return err
		}
	}
	return nil
}

// readConversation ingests what is on the path, then, where they are wanted, the branches.
func readConversation(ctx context.Context, in *intake, p place, c message.Conversation, off map[int]string) error {
	if err := in.begin(ctx, p); err != nil {
		return err
	}
	branches := make(map[string][]message.Message)
	var names []string
	for i, m := range c.Messages {
		name, aside := off[c.Lines[i]]
		if !aside {
			if err := in.add(ctx, m); err != nil {
				return err
			}
			continue
		}
		if branches[name] == nil {
			names = append(names, name)
		}
		branches[name] = append(branches[name], m)
	}
	for _, name := range names {
		if !in.o.Branches {
			in.leave(leftBranches, len(branches[name]))
			continue
		}
		if err := in.begin(ctx, place{agent: p.agent, session: p.session + "#" + name}); err != nil {
			return err
		}
		for _, m := range branches[name] {
			if err := in.add(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// What Report.Left counts.
const (
	leftBranches  = "messages on branches that the host does not show"
	leftEmpty     = "messages without content"
	leftSummaries = "summaries"
	leftDeleted   = "sessions that were deleted in the host"
	leftFiles     = "parts that are kept in files beside the database"
)

// splitLineError returns the place of a line's error and what is wrong there.
func splitLineError(err error) (where, reason string) {
	le, ok := errors.AsType[*message.LineError](err)
	if !ok {
		return "", err.Error()
	}
	where = le.File + ":" + strconv.Itoa(le.Line)
	return where, strings.TrimPrefix(le.Error(), where+": ")
}

// entryHead is what the entries of a session file say about their order.
type entryHead struct {
	Type       string  `json:"type"`
	ID         string  `json:"id"`
	ParentID   *string `json:"parentId"`
	TargetID   *string `json:"targetId"`
	AppendMode string  `json:"appendMode"`
}

// grow puts an entry into a tree, and moves the leaf: to the newest entry, or where a leaf entry says.
func (h *entryHead) grow(t *tree) {
	if h.ID == "" || h.Type == "session" {
		return
	}
	parent := ""
	if h.ParentID != nil {
		parent = *h.ParentID
	}
	if h.Type == "leaf" {
		if h.TargetID != nil {
			t.leaf = *h.TargetID
		}
		return
	}
	t.add(h.ID, parent)
	if h.AppendMode != "side" {
		t.leaf = h.ID
	}
}

// offPath returns the lines of a session file that hold entries the host does not show, with the name of the branch they are on. It
// returns none for files that are no tree, and where links are missing: then everything counts as shown.
func offPath(data []byte) map[int]string {
	t := newTree()
	lines := make(map[string]int)
	sessions, linked := 0, false
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var h entryHead
		if json.Unmarshal(line, &h) != nil {
			continue // reported already, if it is anything; where a link is missing now, the path shows
		}
		if h.Type == "session" {
			sessions++
		}
		linked = linked || h.ParentID != nil
		if _, ok := lines[h.ID]; !ok {
			lines[h.ID] = n
		}
		h.grow(t)
	}
	if sessions != 1 || !linked {
		return nil
	}
	path, ok := t.path()
	if !ok {
		return nil
	}
	out := make(map[int]string)
	for _, branch := range t.branches(path) {
		for _, id := range branch {
			out[lines[id]] = branch[len(branch)-1]
		}
	}
	return out
}

// home is what a file's path says about its messages.
type home struct {
	place
	// fixed says that the session is known, whatever the file calls it.
	fixed bool
}

// sessionsFolder is where OpenClaw keeps the transcripts of an agent.
var sessionsFolder = regexp.MustCompile(`(?:^|/)agents/([^/]+)/sessions/[^/]+$`)

// placeOf names the agent and session of a file: those of OpenClaw are in a folder of the agent, beside an index that knows
// the key of the session.
func placeOf(name string) home {
	base := filepath.Base(name)
	session := base
	for _, ext := range []string{".zst", ".gz", ".jsonl", ".json"} {
		session = strings.TrimSuffix(session, ext)
	}
	if name == "-" || session == "" {
		session = "import"
	}
	h := home{place: place{session: session}}
	abs, err := filepath.Abs(name)
	if err != nil {
		return h
	}
	m := sessionsFolder.FindStringSubmatch(filepath.ToSlash(abs))
	if m == nil {
		return h
	}
	h.agent = m[1]
	id, _, _ := strings.Cut(base, ".")
	if key, ok := sessionKey(filepath.Join(filepath.Dir(abs), "sessions.json"), id); ok {
		h.session, h.fixed = key, true
		if strings.Contains(base, ".jsonl.") && !strings.HasSuffix(base, ".jsonl.zst") && !strings.HasSuffix(base, ".jsonl.gz") {
			h.session += "#" + strings.TrimPrefix(base, id+".jsonl.") // an older state that the host set aside
		}
	}
	return h
}

// sessionKey looks a session up in OpenClaw's index of transcripts.
func sessionKey(index, id string) (string, bool) {
	data, err := os.ReadFile(index)
	if err != nil {
		return "", false
	}
	var sessions map[string]struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(data, &sessions) != nil {
		return "", false
	}
	best := ""
	for key, s := range sessions {
		if s.SessionID == id && (best == "" || key < best) {
			best = key
		}
	}
	return best, best != ""
}

// at names a place in a database.
func at(src *source, format string, args ...any) string {
	return src.name + ": " + fmt.Sprintf(format, args...)
}
