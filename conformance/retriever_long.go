package conformance

import (
	"fmt"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
)

// fillSaying is fill with a further entry of each session for each text.
func (r *retrieverRun) fillSaying(texts []string) string {
	for _, text := range texts {
		batch := r.make(batch{Entries: []entrySpec{{Size: 4}, {Who: 1, Size: 4}, {Who: 2, Size: 4}}})
		for i := range batch {
			e := &batch[i]
			e.Message = message.New(e.Role, text)
			e.Fingerprint = message.Fingerprint(e.Message)
		}
		if _, err := r.store.Append(r.ctx(), cloneEntries(batch)); err != nil {
			return fmt.Sprintf("Append of long entries: error %v, want none", err)
		}
		r.remember(batch)
	}
	return r.fill()
}

// fillInjected stores and tells entries of which a client wrote some: what it put in, around what was said, is no part of Entry.Text.
func (r *retrieverRun) fillInjected() string {
	const said = "the budget report moved to friday, as the kestrel invoice says of the bridge"
	put := func(tag string) string { return "<" + tag + ">\nzebra orchid " + said + " volcano\n</" + tag + ">" }
	var batch []core.Entry
	add := func(who int, role message.Role, text string) {
		e := r.make(ordinary(3))[who]
		e.Role, e.Message = role, message.New(role, text)
		if role == message.Tool {
			e.Message.Parts = []message.Part{{Kind: message.ToolResult, CallID: "c1", Name: "read", Text: text}}
		}
		e.Fingerprint = message.Fingerprint(e.Message)
		if e.Text() == e.Message.Text() || e.Text() == "" {
			panic("conformance: what a client puts in is known by other signs now: " + text[:20])
		}
		batch = append(batch, e)
	}
	long := strings.Repeat(said+". ", 12)
	for who := range 3 {
		add(who, message.User, put("system-reminder")+"\n"+said)
		add(who, message.User, said+"\n"+put("environment_details"))
		add(who, message.User, long+"\n"+put("system-reminder")+"\n"+long)
		add(who, message.Tool, said+"\n"+put("system-reminder"))
		add(who, message.User, "<user_query>"+said+"</user_query>\n"+put("git_status"))
	}
	// Each follows what is there of its session.
	for i := range batch {
		id := batch[i].SessionID()
		batch[i].Seq = r.next[id]
		r.next[id]++
	}
	if text := r.tell(batch, r.retriever); text != "" {
		return text
	}
	r.remember(batch)
	return ""
}

// blankless are texts with long runs of characters of several bytes, in which no blank stands, around a word that is asked for. They begin at every byte of a
// character: wherever a passage is cut, it is within one of them.
func blankless() []string {
	var texts []string
	words := strings.Fields(queries[0] + " " + queries[1])
	for size, run := range map[int]string{2: "бюджетныйотчёт", 3: "日本語予算報告", 4: "𠀀𠀁𠀂𠀃"} {
		run = strings.Repeat(run, 900/len(run))
		for shift := range size {
			word := words[(size+2*shift)%len(words)] + ","
			says := strings.Repeat("x", 1+shift) + " " + word
			// Where no blank stands at all, what is cut by bytes is cut at every byte of a character.
			dots := strings.Repeat(".", 1+shift)
			texts = append(texts, dots+word+run)
			texts = append(texts, says+run, run+", "+says, run+" "+says+run)
			// Letters that are longer in lower case: where a word stands there is not where it stands in the text.
			texts = append(texts, strings.Repeat("\u0130", 1+shift)+" "+run+" "+says+run)
		}
	}
	// Where letters are longer or shorter in lower case, what stands there at a word is half a sign, or nothing any more.
	signs, word := strings.Repeat("\u2014", 30), words[1]
	for _, odd := range []string{strings.Repeat("\u0130", len(word)+1), strings.Repeat("\u0130", len(word)+5), "\u212a"} {
		texts = append(texts, odd+" "+word+signs)
	}
	return append(texts, strings.Repeat("\u0130", 40)+" "+word)
}

// fillParted is fill with entries that are long enough to be looked at in parts. All of them say what is asked for more than once, less in each part, so that
// others come in between.
func (r *retrieverRun) fillParted() string {
	aside := strings.Repeat(" the ferry sails past the lighthouse and the granite quay at seven", 8)
	words := strings.Fields(queries[0])
	var texts []string
	for n := range 3 {
		var b strings.Builder
		for part := range 3 {
			fmt.Fprintf(&b, "%s %s.%s ", strings.Join(words[:max(1, len(words)-2*part)], " "), queries[1], aside[:200+100*((part+n)%3)])
		}
		texts = append(texts, b.String(), strings.Join(words[:2+n], " "))
	}
	return r.fillSaying(texts)
}

// sentences are texts of many sentences and lines. Each says other words, and more of what is asked for than the one before, or less, or those in
// the middle the most: the best passages of a text do not come first in it.
func sentences() []string {
	asked := strings.Fields(queries[0] + " " + queries[1])
	var texts []string
	n := 0
	for _, end := range []string{". ", "\n"} {
		for shape := range 3 {
			var b strings.Builder
			const most = 9
			for i := range most {
				says := [...]int{i, most - 1 - i, min(i, most-1-i) * 2}[shape]
				for range 5 {
					n++
					fmt.Fprintf(&b, "%s ", markOf(8, n))
				}
				b.WriteString(strings.Join(asked[:min(says, len(asked))], " ") + end)
			}
			texts = append(texts, b.String())
		}
	}
	return texts
}
