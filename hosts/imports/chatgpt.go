package imports

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/contextengine/contextengine/core/message"
)

// exported is a conversation of a data export of ChatGPT.
type exported struct {
	ID      string              `json:"conversation_id"`
	OldID   string              `json:"id"`
	Title   string              `json:"title"`
	Created json.Number         `json:"create_time"`
	Current string              `json:"current_node"`
	Mapping map[string]*chatRow `json:"mapping"`
}

// chatRow is a node of the tree that a conversation is.
type chatRow struct {
	Parent   string          `json:"parent"`
	Children []string        `json:"children"`
	Message  json.RawMessage `json:"message"`
}

// readChatGPT imports conversations. Of each, what is imported is the path to the message that was shown last.
func readChatGPT(ctx context.Context, src *source, in *intake) error {
	d := json.NewDecoder(bytes.NewReader(src.data))
	first := bytes.TrimLeft(src.data, " \t\r\n")
	array := len(first) > 0 && first[0] == '['
	if array {
		if _, err := d.Token(); err != nil {
			return in.skip(src.name, err.Error())
		}
	}
	for n := 0; array && d.More() || !array && n == 0; n++ {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			// Behind a fault in the syntax nothing can be found again.
			return in.skip(fmt.Sprintf("%s: conversation %d, byte %d", src.name, n, d.InputOffset()), err.Error())
		}
		var c exported
		if err := json.Unmarshal(raw, &c); err != nil {
			if err := in.skip(fmt.Sprintf("%s: conversation %d", src.name, n), err.Error()); err != nil {
				return err
			}
			continue
		}
		if err := c.read(ctx, src, in, n); err != nil {
			return err
		}
	}
	if !array {
		return nil
	}
	if _, err := d.Token(); err != nil {
		return in.skip(fmt.Sprintf("%s: byte %d", src.name, d.InputOffset()), "the list of conversations is cut off: "+err.Error())
	}
	return nil
}

func (c *exported) name(n int) string {
	for _, id := range []string{c.ID, c.OldID} {
		if id != "" {
			return id
		}
	}
	return "conversation " + strconv.Itoa(n)
}

// read hands over one conversation.
func (c *exported) read(ctx context.Context, src *source, in *intake, n int) error {
	t := c.tree()
	t.leaf = c.Current
	path, ok := t.path()
	if !ok {
		if len(c.Mapping) == 0 {
			return nil
		}
		if err := in.skip(at(src, "conversation %q", c.name(n)), "there is no path to the message shown last, "+strconv.Quote(c.Current)); err != nil {
			return err
		}
		return nil
	}
	branches := t.branches(path)
	for i, run := range append([][]string{path}, branches...) {
		name := c.name(n)
		if i > 0 {
			name += "#" + run[len(run)-1]
		}
		if err := c.run(ctx, src, in, name, run, i > 0); err != nil {
			return err
		}
	}
	return nil
}

// tree returns the nodes in an order that does not depend on that of a map: parents first, children as they are listed.
func (c *exported) tree() *tree {
	t := newTree()
	var roots []string
	for id, row := range c.Mapping {
		if row != nil && c.Mapping[row.Parent] == nil {
			roots = append(roots, id)
			row.Parent = ""
		}
	}
	slices.Sort(roots)
	for stack := roots; len(stack) > 0; {
		id := stack[0]
		stack = stack[1:]
		row := c.Mapping[id]
		if _, ok := t.parent[id]; ok || row == nil {
			continue
		}
		t.add(id, row.Parent)
		stack = append(append([]string(nil), row.Children...), stack...)
	}
	var rest []string
	for id, row := range c.Mapping {
		if _, ok := t.parent[id]; !ok && row != nil {
			rest = append(rest, id)
		}
	}
	slices.Sort(rest)
	for _, id := range rest {
		t.add(id, c.Mapping[id].Parent)
	}
	return t
}

// run hands over the messages of a path.
func (c *exported) run(ctx context.Context, src *source, in *intake, name string, ids []string, branch bool) error {
	var calls calls
	var messages []message.Message
	empty := 0
	for _, id := range ids {
		raw := c.Mapping[id].Message
		if len(raw) == 0 || string(raw) == "null" {
			continue // the root
		}
		m, err := decodeChatGPT(id, raw, &calls)
		if err != nil {
			if err := in.skip(at(src, "conversation %q, message %q", name, id), err.Error()); err != nil {
				return err
			}
			continue
		}
		if len(m.Parts) == 0 {
			empty++
			continue
		}
		messages = append(messages, m)
	}
	if branch && !in.o.Branches {
		in.leave(leftBranches, len(messages))
		return nil
	}
	in.leave(leftEmpty, empty)
	if len(messages) == 0 {
		return nil
	}
	if err := in.begin(ctx, place{session: name}); err != nil {
		return err
	}
	for _, m := range messages {
		if err := in.add(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// seconds reads a time in seconds, with a fraction.
func seconds(n json.Number) time.Time {
	s, err := n.Float64()
	if err != nil || s <= 0 || s > 1e11 {
		return time.Time{}
	}
	whole, fraction := math.Modf(s)
	return time.Unix(int64(whole), int64(fraction*1e9)).UTC().Truncate(time.Millisecond)
}
