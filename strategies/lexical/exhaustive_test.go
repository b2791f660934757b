package lexical

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/core/message"
	"github.com/contextengine/contextengine/internal/drawn"
)

// plainPassage is a passage as the exhaustive ranking sees it: counted words, no postings.
type plainPassage struct {
	entry      int
	body, own  map[string]uint32
	length     uint32
	asks       bool
	says       meta
	timed      bool
	prev, next int
	context    uint32
}

// exhaustive ranks by the rules alone: every passage is given every term. It shares with the index how texts are taken apart, and the arithmetic.
type exhaustive struct {
	cfg      Config
	entries  []core.Entry
	passages []plainPassage
	lengths  []uint32 // by entry
	says     []meta   // by entry
	weights  [2 * reach]uint32
}

func wordsIn(text string, lang language) (words map[string]uint32, length uint32, timed bool) {
	words = map[string]uint32{}
	a := analyzer{}
	a.emit = func(w []byte, k kind) {
		word := string(w)
		if k == plain || k == foreign && lang != english {
			timed = timed || isTimeWord(word)
			if lang.skips(word) {
				return
			}
			if cut := lang.cut(word); lang != english && cut != lang.stemOf(word) {
				words[cut]++
			}
			word = lang.stemOf(word)
		}
		words[word]++
		if k != whole {
			length++
		}
	}
	a.run(text)
	return words, length, timed
}

func newExhaustive(cfg Config, entries []core.Entry) *exhaustive {
	x := &exhaustive{cfg: cfg}
	x.weights = newSegment(&cfg).weights
	for _, e := range entries {
		if e.Type != core.TypeHeartbeat && e.Type != core.TypeErased {
			x.entries = append(x.entries, e)
		}
	}
	slices.SortFunc(x.entries, func(a, b core.Entry) int {
		return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq), a.Time.Compare(b.Time), cmp.Compare(a.ID, b.ID))
	})
	for i, e := range x.entries {
		t := e.Time.UTC()
		own := map[string]uint32{t.Format("2006-01-02"): 1, t.Format("2006-01"): 1}
		for _, text := range []string{fmt.Sprint(t.Year()), t.Month().String(), fmt.Sprint(t.Day()), t.Weekday().String()} {
			words, _, _ := wordsIn(text, english)
			for w, n := range words {
				own[w] += n
			}
		}
		if !generic(e.Message.Name) {
			words, _, _ := wordsIn(e.Message.Name, english)
			for w, n := range words {
				own[w] += n
			}
		}
		text := e.Text()
		x.lengths, x.says = append(x.lengths, 0), append(x.says, 0)
		for _, sp := range passages(text, cfg.PassageWords, cfg.MaxPassages) {
			p := plainPassage{entry: i, own: own, prev: -1, next: -1, asks: asks(text[sp.start:sp.end])}
			p.body, p.length, p.timed = wordsIn(text[sp.start:sp.end], languageOf(text, false))
			x.lengths[i] += p.length
			if e.Role == message.User {
				p.says = wantsOf(text[sp.start:sp.end], len(passages(text, cfg.PassageWords, cfg.MaxPassages)) == 1)
			}
			x.says[i] |= p.says
			if n := len(x.passages); n > 0 && x.entries[x.passages[n-1].entry].Session == e.Session {
				p.prev = n - 1
				x.passages[n-1].next = n
			}
			x.passages = append(x.passages, p)
		}
	}
	for i := range x.passages {
		p := &x.passages[i]
		p.context = p.length * unit
		x.around(i, func(j int, q *plainPassage) { p.context += x.weights[j] * min(q.length, neighbourCap) })
	}
	return x
}

// around calls f with the neighbours of a passage.
func (x *exhaustive) around(i int, f func(j int, q *plainPassage)) {
	for j, q := 0, x.passages[i].prev; j < reach && q >= 0; j, q = j+1, x.passages[q].prev {
		f(j, &x.passages[q])
	}
	for j, q := 0, x.passages[i].next; j < reach && q >= 0; j, q = j+1, x.passages[q].next {
		f(reach+j, &x.passages[q])
	}
}

// kin returns the words of a stem's family, the most similar first.
func (x *exhaustive) kin(stem string) []string {
	found := map[string]bool{}
	for i := range x.passages {
		for _, m := range []map[string]uint32{x.passages[i].body, x.passages[i].own} {
			for w := range m {
				_, letters := beginning([]byte(w))
				found[w] = found[w] || letters && len(stem) >= kinLetters && strings.HasPrefix(w, stem[:kinLetters]) && akin([]byte(stem), []byte(w))
			}
		}
	}
	var out []string
	for w, ok := range found {
		if ok {
			out = append(out, w)
		}
	}
	if _, letters := beginning([]byte(stem)); !letters {
		return nil
	}
	slices.SortFunc(out, func(a, b string) int {
		return cmp.Or(cmp.Compare(common([]byte(stem), []byte(b)), common([]byte(stem), []byte(a))), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
	return out[:min(len(out), maxKin)]
}

// search returns ids and scores of the best entries.
func (x *exhaustive) search(q core.SearchQuery) string {
	quest := questionOf(q.Text)
	answering := x.weights[0]
	if quest.asks {
		answering = uint32(math.Round(float64(answering) * x.cfg.AnswerBoost))
	}
	type part struct {
		word   string
		df     int
		weight float64
	}
	var parts []part
	weight := 1.0
	words := func(w string) bool {
		df := 0
		for i := range x.passages {
			if x.passages[i].body[w]+x.passages[i].own[w] > 0 {
				df++
			}
		}
		if df > 0 && !slices.ContainsFunc(parts, func(p part) bool { return p.word == w }) {
			parts = append(parts, part{w, df, weight})
		}
		return df > 0
	}
	var related []string
	a := analyzer{}
	a.emit = func(w []byte, k kind) {
		if k == plain || k == foreign {
			eachForm(string(w), languageOf(q.Text, true), words)
			if lang := languageOf(q.Text, true); k == plain && !lang.foreign() && !lang.skips(string(w)) {
				related = append(related, string(w))
			}
		} else {
			words(string(w))
		}
	}
	if a.run(bare(q.Text)); len(parts) == 0 {
		a.run(q.Text)
	}
	days := dates(q.Text)
	for _, d := range days {
		words(d)
	}
	weight = nextDay
	for _, d := range days {
		words(dayAfter(d))
	}
	weight = x.cfg.KinWeight
	if len(related) <= maxRelated {
		for _, word := range related {
			for _, w := range x.kin(english.stemOf(word)) {
				words(w)
			}
		}
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.df, b.df) })
	var sum uint64
	for i := range x.passages {
		sum += uint64(x.passages[i].context)
	}
	n := float64(len(x.passages))
	perLength := x.cfg.K1 * x.cfg.B * n / max(float64(sum), 1) * unit
	flat := x.cfg.K1 * (1 - x.cfg.B) * unit
	named := map[string]bool{}
	asked := wordsOf(q.Text)
	type result struct {
		entry int
		score float64
	}
	best := map[int]float64{}
	for i := range x.passages {
		p := &x.passages[i]
		e := x.entries[p.entry]
		if !q.Scope.Contains(e.SessionID()) || !q.From.IsZero() && e.Time.Before(q.From) || !q.To.IsZero() && !e.Time.Before(q.To) ||
			q.Exclude != nil && q.Exclude(e.ID) {
			continue
		}
		score := 0.0
		for _, t := range parts {
			f := (p.body[t.word] + p.own[t.word]) * unit
			x.around(i, func(j int, q *plainPassage) {
				weight := x.weights[j]
				if j == 0 && q.asks && q.entry != p.entry {
					weight = answering
				}
				scale, div := q.body[t.word], uint32(1)
				if q.length > neighbourCap {
					scale, div = scale*neighbourCap, q.length
				}
				f += weight * scale / div
			})
			if f > 0 {
				idf := math.Log(1 + (n-float64(t.df)+0.5)/(float64(t.df)+0.5))
				score += t.weight * idf * (x.cfg.K1 + 1) * float64(f) / (float64(f) + flat + perLength*float64(p.context))
			}
		}
		if score == 0 {
			continue
		}
		damp := 1.0
		if r := float64(x.lengths[p.entry]) / float64(x.cfg.LengthTerms); r > 1 {
			damp = math.Pow(r, -x.cfg.LengthPower)
		}
		if x.says[p.entry]&ruling != 0 {
			damp *= x.cfg.RuleBoost
		}
		if x.says[p.entry]&wishing != 0 {
			damp *= x.cfg.WishBoost
		}
		factor := float64(float32(damp))
		if quest.asks && p.asks {
			factor *= x.cfg.QuestionDamp
		}
		if quest.when && p.timed {
			factor *= x.cfg.TimeBoost
		}
		name := e.Message.Name
		if _, ok := named[name]; !ok && !generic(name) {
			s := newSegment(&x.cfg)
			s.actor(name)
			named[name] = s.actors[0].namedIn(q.Text, asked)
		}
		if named[name] {
			factor *= x.cfg.NamedBoost
		}
		if name == "" && (quest.mine && e.Role == message.Assistant || quest.yours && e.Role == message.User) {
			factor *= x.cfg.SideDamp
		}
		best[p.entry] = max(best[p.entry], score*factor)
	}
	var all []result
	for i, v := range best {
		all = append(all, result{i, v})
	}
	slices.SortFunc(all, func(a, b result) int {
		x, y := x.entries[a.entry], x.entries[b.entry]
		return cmp.Or(cmp.Compare(b.score, a.score), y.Time.Compare(x.Time), cmp.Compare(y.Seq, x.Seq), cmp.Compare(x.ID, y.ID))
	})
	var b strings.Builder
	for _, r := range all[:min(len(all), q.Limit)] {
		fmt.Fprintf(&b, "%s %v\n", x.entries[r.entry].ID, r.score)
	}
	return b.String()
}

// TestLikeExhaustive expects the ranking that leaves things out to find the same, to the last bit of every score, as the one that does not.
func TestLikeExhaustive(t *testing.T) {
	closed := 0
	base := drawn.Seed(t)
	for seed := range uint64(14) {
		rng := rand.New(rand.NewPCG(base, seed))
		// Words as unevenly spread as in a language: the frequent ones are what can be left out.
		zipf := rand.NewZipf(rng, 1.2, 4, 400)
		text := func(most int) string {
			var b strings.Builder
			for range 1 + rng.IntN(most) {
				switch rng.IntN(12) {
				case 0:
					b.WriteString("March") // is a date's, too
				case 1: // words of families, some of them larger than what is taken of one
					b.WriteString([]string{"harbor", "photog"}[rng.IntN(2)] + []string{"", "ak", "akli", "oma", "omas", "u", "uze", "iki", "ikiz", "ento", "entor"}[rng.IntN(11)])
				default:
					fmt.Fprintf(&b, "w%dx", zipf.Uint64())
				}
				b.WriteString([]string{" ", " ", " ", " ", ". ", "? ", "\n"}[rng.IntN(7)])
			}
			return b.String() + []string{"", "?", " yesterday"}[rng.IntN(3)]
		}
		cfg := DefaultConfig()
		cfg.PassageWords = 10
		s := newSegment(&cfg)
		// Some terms have bitmaps, with 0 all that are not rare.
		s.frequent.from = uint32(seed%5) * 12
		w := &scratch{perWorker: int(seed%4) * 40} // with 40 and more there are several workers
		var entries []core.Entry
		check := func(times int) {
			want := newExhaustive(cfg, entries)
			for range times {
				q := core.SearchQuery{Scope: core.Scope{Agent: "ada"}, Text: text(25), Limit: 1 + rng.IntN(8)}
				if rng.IntN(3) == 0 {
					q.Text = "Mira " + q.Text
				}
				if rng.IntN(3) == 0 {
					q.Text = "when " + q.Text
				}
				if rng.IntN(3) == 0 {
					q.Text += " in March 2024, March 4, 2024"
				}
				q.Text += []string{"", "", " I", " your advice"}[rng.IntN(4)]
				switch rng.IntN(4) {
				case 0:
					q.Scope.Session = "s1"
				case 1:
					q.Exclude = func(id string) bool { return len(id) > 3 }
				case 2:
					q.From = time.Date(2024, 3, 4, 13, 0, 0, 0, time.UTC)
					q.To = q.From.Add(3 * time.Hour)
				}
				found, err := s.search(context.Background(), q, w)
				if err != nil {
					t.Fatal(err)
				}
				var got strings.Builder
				for _, m := range found {
					fmt.Fprintf(&got, "%s %v\n", s.ids.at(s.docs[m.doc].id), m.score)
				}
				if want := want.search(q); got.String() != want {
					t.Fatalf("seed %d, query %+v: got\n%s\nwant\n%s", seed, q, got.String(), want)
				}
				if len(w.chosen) < len(s.floors) {
					closed++
				}
				for i, v := range w.score {
					if v != 0 {
						t.Fatalf("seed %d: scratch of passage %d is not clean", seed, i)
					}
				}
			}
		}
		for i := range 150 + rng.IntN(500) {
			e := core.Entry{
				ID: fmt.Sprintf("e%d", i), Agent: "ada", Session: fmt.Sprintf("s%d", rng.IntN(4)), Seq: int64(i - rng.IntN(3)),
				Type: core.TypeMessage, Time: time.Date(2024, 3, 4, 12, i, 0, 0, time.UTC), Message: message.New(message.User, text(60)),
			}
			e.Message.Name = []string{"", "", "Mira", "Tomas"}[rng.IntN(4)]
			switch rng.IntN(6) {
			case 0:
				e.Message = message.New(message.User, "Always "+text(8))
			case 1:
				e.Message = message.New(message.User, text(90)+" prefer "+text(20))
			case 2:
				e.Message.Role = message.Assistant
			}
			e.Role = e.Message.Role
			if rng.IntN(5) == 0 && len(entries) > 0 { // a change, or a removal
				k := rng.IntN(len(entries))
				e.ID, e.Session, e.Seq = entries[k].ID, entries[k].Session, entries[k].Seq
				e.Type = []core.EntryType{core.TypeMessage, core.TypeErased}[rng.IntN(2)]
				entries[k] = e
			} else {
				entries = append(entries, e)
			}
			s.put(e)
			if i%100 == 60 { // what is written now has to reach what searches left
				check(3)
			}
		}
		if seed%3 == 0 {
			s = s.tidy()
			s.frequent.from = uint32(seed%5) * 12
		}
		check(9)
		if seed%5 == 0 && len(s.frequent.of) == 0 {
			t.Errorf("seed %d: no term has bitmaps, or this test shows nothing of them", seed)
		}
	}
	if closed < 20 {
		t.Errorf("%d queries left something out, want at least 20, or this test shows nothing", closed)
	}
}
