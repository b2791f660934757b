package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

func embedderChecks() []Check {
	return []Check{
		{ID: "embed.shape", Suite: SuiteEmbedder, model: embedShape,
			Rule: "there is one vector for each text, blank ones too, of the length that Dimensions says, of finite numbers"},
		{ID: "embed.order", Promise: 6, Suite: SuiteEmbedder, model: embedOrder,
			Rule: "the vector of a text does not depend on what stands beside it, and comes in its place"},
		{ID: "embed.many", Promise: 6, Suite: SuiteEmbedder, model: embedMany, once: true,
			Rule: "there is one vector for each of many texts, however many an endpoint takes at once, and each comes in its place"},
		{ID: "embed.long", Suite: SuiteEmbedder, model: embedLong, once: true,
			Rule: "any text has a vector of the same length: one of some thousand words, and one whose bytes are no UTF-8; what is longer than the model takes has none at all, or one like the others"},
		{ID: "embed.named", Suite: SuiteEmbedder, model: embedNamed,
			Rule: "Model names the model, and neither it nor Dimensions changes once they are known"},
		{ID: "embed.concurrent", Promise: 6, Suite: SuiteEmbedder, model: embedConcurrent,
			Rule: "several calls at the same time get what each of them gets alone"},
		{ID: "embed.pure", Suite: SuiteEmbedder, model: embedPure,
			Rule: "an embedder changes nothing it is given, and what it returned belongs to the caller"},
		{ID: "cancel.embed", Promise: 9, Suite: SuiteEmbedder, model: embedCancel,
			Rule: "a call with an ended context returns the context's error"},
		{ID: "embed.cut", Promise: 9, Suite: SuiteEmbedder, model: embedCut, once: true,
			Rule: "a call whose context ends meanwhile does not go on to its end"},
	}
}

func completerChecks() []Check {
	return []Check{
		{ID: "complete.answers", Suite: SuiteCompleter, model: completeAnswers,
			Rule: "a question of any text is answered, with figures that are not negative"},
		{ID: "complete.bare", Suite: SuiteCompleter, model: completeBare, once: true,
			Rule: "a prompt alone is a question, without a bound; and an error over an endless one does not hold it"},
		{ID: "complete.concurrent", Promise: 6, Suite: SuiteCompleter, model: completeConcurrent,
			Rule: "several questions at the same time are answered, none with the answer to another one"},
		{ID: "complete.model", Promise: 6, Suite: SuiteCompleter, model: completeModel, once: true,
			Rule: "a question that names no model is answered by the completer's own, whatever model another one named"},
		{ID: "complete.cancel", Promise: 9, Suite: SuiteCompleter, model: completeCancel,
			Rule: "a call with an ended context returns the context's error, and no prompt stands in an error"},
		{ID: "complete.cut", Promise: 9, Suite: SuiteCompleter, model: completeCut, once: true,
			Rule: "a call whose context ends meanwhile does not go on to its end, and no prompt stands in its error"},
		{ID: "complete.bound", Suite: SuiteCompleter, model: completeBound, once: true,
			Rule: "MaxTokens bounds the answer: no more tokens are reported"},
	}
}

// embed asks for vectors and looks at their form.
func (r *modelRun) embed(texts []string) ([][]float32, string) {
	got, err := r.embedder.Embed(r.ctx(), texts)
	if err != nil {
		return nil, fmt.Sprintf("Embed of %d texts: error %v, want none", len(texts), err)
	}
	if len(got) != len(texts) {
		return nil, fmt.Sprintf("Embed of %d texts: %d vectors", len(texts), len(got))
	}
	for i, v := range got {
		if d := r.embedder.Dimensions(); len(v) != d || d == 0 {
			return nil, fmt.Sprintf("Embed: vector %d has %d numbers, Dimensions says %d", i, len(v), d)
		}
		for _, x := range v {
			if f := float64(x); math.IsNaN(f) || math.IsInf(f, 0) {
				return nil, fmt.Sprintf("Embed: vector %d holds %v", i, f)
			}
		}
	}
	// A copy: where a later call wrote over it, nothing could be compared.
	out := make([][]float32, len(got))
	for i, v := range got {
		out[i] = slices.Clone(v)
	}
	return out, ""
}

// alike is how near to each other the vectors of one text are, as the cosine.
const alike = 0.999

func sameWay(a, b []float32) bool {
	var ab, aa, bb float64
	for i := range min(len(a), len(b)) {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return len(a) == len(b) && (aa == 0 && bb == 0 || ab >= alike*math.Sqrt(aa*bb) && aa > 0 && bb > 0)
}

// said are the texts of a case that say something: what others cost is the endpoint's business.
func (r *modelRun) said() []string {
	out := []string{"the budget report moved to friday", "数据库 迁移"}
	for _, s := range r.texts {
		if strings.TrimSpace(s) != "" && len(s) < 4000 {
			out = append(out, strings.ToValidUTF8(s, "?"))
		}
	}
	return out
}

func embedShape(r *modelRun) string {
	// The blank ones stand among others and alone.
	one, two := r.said()[0], r.said()[1]
	for _, texts := range [][]string{r.said(), slices.Insert(r.said(), 1, "", " ", "\n\t"), {""}, {one, one, two}, {one, two, one}, {"", "", one}} {
		if _, text := r.embed(texts); text != "" {
			return fmt.Sprintf("%s, of %.80q", text, texts)
		}
	}
	if got, err := r.embedder.Embed(r.ctx(), nil); err != nil || len(got) != 0 {
		return fmt.Sprintf("Embed of no text: %d vectors, error %v", len(got), err)
	}
	return ""
}

func embedOrder(r *modelRun) string {
	texts := r.said()
	all, text := r.embed(texts)
	if text != "" {
		return text
	}
	for i := range texts {
		one, text := r.embed(texts[i : i+1])
		if text != "" {
			return text
		}
		if !sameWay(one[0], all[i]) {
			return fmt.Sprintf("Embed of %d texts: vector %d is not that of %s alone", len(texts), i, quoteShort(texts[i]))
		}
	}
	return ""
}

// embedMany asks for more than endpoints take at once, and for the vectors of some of it alone.
func embedMany(r *modelRun) string {
	const most = 2100
	texts := make([]string, most)
	for i := range texts {
		texts[i] = makeText(markOf(6, i), textPlain, 5+i%7, i, nil)
	}
	texts[20] = texts[3] // the same twice
	// These differ in the end alone.
	for _, i := range []int{31, 32, most - 2, most - 1} {
		texts[i] = texts[2] + texts[2] + strings.Repeat(" "+strings.Repeat(string(rune('f'+i%9)), 6), 40)
	}
	alone := map[int][]float32{}
	for _, n := range []int{33, 129, 600, most} {
		all, text := r.embed(texts[:n])
		if text != "" {
			return text
		}
		for _, i := range []int{0, 31, 32, n * 2 / 3, n - 2, n - 1} {
			if alone[i] == nil {
				// Of one that knows no other text.
				fresh := &modelRun{tb: r.tb, watch: r.watch}
				r.open(fresh)
				one, text := fresh.embed(texts[i : i+1])
				if text != "" {
					return text
				}
				alone[i] = one[0]
			}
			if !sameWay(all[i], alone[i]) {
				return fmt.Sprintf("Embed of %d texts: vector %d is not that of its text alone", n, i)
			}
		}
	}
	return ""
}

// embedLong asks for what is longer than most, alone and among others. Whether a model takes what is far longer is its own business.
func embedLong(r *modelRun) string {
	const words = 1700 // ten thousand bytes
	long := makeText(markOf(6, 0), textPlain, words, 0, nil)
	for _, texts := range [][]string{{long}, {r.said()[0], long, r.said()[1]}, {"not \xff\xfe text \xc3(", "\xff", "cut \xe4\xb8"}, {"nul\x00nul", "\x00"}} {
		if _, text := r.embed(texts); text != "" {
			return fmt.Sprintf("%s, of %.80q", text, texts)
		}
	}
	for _, times := range []int{3, 12, 40} {
		far := strings.Repeat(long+" ", times)
		texts := []string{r.said()[0], far, r.said()[1]}
		if _, err := r.embedder.Embed(r.ctx(), texts); err != nil {
			break
		}
		if _, text := r.embed(texts); text != "" {
			return fmt.Sprintf("%s, the one in the middle of %d bytes", text, len(far))
		}
	}
	return ""
}

func embedNamed(r *modelRun) string {
	name, dimensions := r.embedder.Model(), r.embedder.Dimensions()
	if name == "" {
		return "Model() is empty"
	}
	if _, text := r.embed(r.said()); text != "" {
		return text
	}
	if m, d := r.embedder.Model(), r.embedder.Dimensions(); m != name || dimensions != 0 && d != dimensions {
		return fmt.Sprintf("Model() and Dimensions() are %q and %d, were %q and %d", m, d, name, dimensions)
	}
	return ""
}

func embedConcurrent(r *modelRun) string {
	texts := r.said()
	want, text := r.embed(texts)
	if text != "" {
		return text
	}
	return atOnce(8, func(i int) string {
		at := i % len(texts)
		got, text := r.embed(texts[at : at+1])
		if text == "" && !sameWay(got[0], want[at]) {
			text = fmt.Sprintf("Embed of %s beside others: another vector than alone", quoteShort(texts[at]))
		}
		return text
	})
}

func embedPure(r *modelRun) string {
	texts, same := r.said(), r.said()
	turned := slices.Clone(texts)
	slices.Reverse(turned)
	var first, kept [][]float32
	for _, others := range [][]string{{"another text"}, turned, append([]string{"one more"}, texts...)} { // fewer, as many, and more
		var err error
		if first, err = r.embedder.Embed(r.ctx(), texts); err != nil || len(first) != len(texts) {
			return fmt.Sprintf("Embed of %d texts: %d vectors, error %v", len(texts), len(first), err)
		}
		kept = make([][]float32, len(first))
		for i := range first {
			kept[i] = slices.Clone(first[i])
		}
		if _, text := r.embed(others); text != "" {
			return text
		}
		for i := range first {
			if !sameWay(first[i], kept[i]) {
				return fmt.Sprintf("Embed: vector %d of an earlier answer is another one after a call for %d texts", i, len(others))
			}
		}
	}
	for i := range texts {
		if texts[i] != same[i] {
			return fmt.Sprintf("Embed changed text %d to %s", i, quoteShort(texts[i]))
		}
	}
	for i := range first {
		clear(first[i])
	}
	again, text := r.embed(texts)
	for i := range again {
		if !sameWay(again[i], kept[i]) {
			return fmt.Sprintf("Embed: vector %d is another one once the caller changed the first", i)
		}
	}
	return text
}

func embedCancel(r *modelRun) string {
	ctx, cancel := cancelled(r.ctx())
	defer cancel()
	if _, err := r.embedder.Embed(ctx, r.said()); !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Embed with a cancelled context: error %v, want context.Canceled", err)
	}
	return ""
}

// cutTries is how often in a row a call may be over before its context, and lengthy is from when on a call is long enough to be cut short: a timer of a tenth of it
// ends in time but for a machine that stands still.
const (
	cutTries = 3
	lengthy  = 20 * time.Millisecond
)

// cut makes calls whose context ends soon after they began, and describes what is wrong with their errors. The first call says how long one takes.
func (r *modelRun) cut(what string, call func(ctx context.Context, try int) error) string {
	began := time.Now()
	if err := call(r.ctx(), 0); err != nil {
		return fmt.Sprintf("%s: error %v, want none", what, err)
	}
	takes := time.Since(began)
	for try := range cutTries {
		ctx, cancel := cancellable(r.ctx())
		timer := time.AfterFunc(takes/10, cancel)
		err := call(ctx, try+1)
		timer.Stop()
		cancel()
		switch {
		case err != nil && strings.Contains(err.Error(), secret):
			return fmt.Sprintf("%s that is cut short: an error holds the prompt: %v", what, err)
		case err != nil && !errors.Is(err, context.Canceled):
			return fmt.Sprintf("%s that is cut short: error %v, want context.Canceled", what, err)
		case err != nil && try > 0:
			return ""
		case err == nil && takes >= lengthy && try == cutTries-1:
			return fmt.Sprintf("%s, whose context ends after a tenth of the time it takes, goes on to its end, %d times in a row", what, cutTries)
		}
	}
	return ""
}

func embedCut(r *modelRun) string {
	return r.cut("Embed", func(ctx context.Context, try int) error {
		_, err := r.embedder.Embed(ctx, []string{makeText(markOf(6, try), textPlain, 40, try, nil), makeText(secret, textPlain, 40, try, nil)})
		return err
	})
}

func completeCut(r *modelRun) string {
	return r.cut("Complete", func(ctx context.Context, try int) error {
		_, err := r.complete(ctx, makeText(markOf(6, try), textPlain, 40, try, nil))
		return err
	})
}

// completeBound asks for little. A model may refuse a bound so small; who answers keeps to it.
func completeBound(r *modelRun) string {
	for _, most := range []int{1, 8, 40} {
		got, err := r.completer.Complete(r.ctx(), core.CompletionRequest{Prompt: secret + " tell the whole story of " + makeText(markOf(6, most), textPlain, 300, most, nil), MaxTokens: most})
		if err != nil && strings.Contains(err.Error(), secret) {
			return fmt.Sprintf("an error holds the prompt: %.200v", err)
		}
		if err == nil && got.OutputTokens > most {
			return fmt.Sprintf("Complete with MaxTokens %d: %d tokens out", most, got.OutputTokens)
		}
	}
	return ""
}

// secret stands in every prompt, and in no error.
const secret = "q8x900z"

func (r *modelRun) complete(ctx context.Context, text string) (core.Completion, error) {
	return r.completer.Complete(ctx, core.CompletionRequest{System: secret + " be brief", Prompt: secret + " " + text, MaxTokens: 64, Purpose: "conformance"})
}

// answer returns the answer to a text, and describes what is wrong with it, if anything.
func (r *modelRun) answer(text string) (core.Completion, string) {
	got, err := r.complete(r.ctx(), text)
	switch {
	case err != nil && strings.Contains(err.Error(), secret):
		return got, fmt.Sprintf("an error holds the prompt: %v", err)
	case err != nil:
		return got, fmt.Sprintf("Complete(%s): error %v, want none", quoteShort(text), err)
	case got.InputTokens < 0 || got.OutputTokens < 0:
		return got, fmt.Sprintf("Complete(%s): %d tokens in and %d out", quoteShort(text), got.InputTokens, got.OutputTokens)
	}
	return got, ""
}

func completeAnswers(r *modelRun) string {
	for _, s := range r.said() {
		if _, text := r.answer(s); text != "" {
			return text
		}
	}
	return ""
}

func completeBare(r *modelRun) string {
	if _, err := r.completer.Complete(r.ctx(), core.CompletionRequest{Prompt: r.said()[0]}); err != nil {
		return fmt.Sprintf("Complete of a prompt without a system text, a bound and a purpose: error %v, want none", err)
	}
	// Whether an endpoint takes so much is its own business.
	const words = 6000
	if _, err := r.complete(r.ctx(), makeText("", textPlain, words, 0, nil)); err != nil && strings.Contains(err.Error(), secret) {
		return fmt.Sprintf("an error holds the prompt: %.200v", err)
	}
	return ""
}

func completeConcurrent(r *modelRun) string {
	texts := r.said()
	// What is answered twice alike when it is asked alone can be told from the answer to another question. Short answers fit many.
	const short = 12
	alone := map[string]string{}
	for _, s := range texts {
		var got [2]string
		for i := range got {
			if c, err := r.complete(r.ctx(), s); err == nil {
				got[i] = c.Text
			}
		}
		if got[0] == got[1] && len(got[0]) > short {
			alone[s] = got[0]
		}
	}
	confused := func(asked, answer string) bool {
		own, ok := alone[asked]
		return ok && answer != own && slices.Contains(slices.Collect(maps.Values(alone)), answer)
	}
	return atOnce(8, func(i int) string {
		asked := texts[i%len(texts)]
		got, text := r.answer(asked)
		if text == "" && confused(asked, got.Text) {
			if again, _ := r.answer(asked); !confused(asked, again.Text) || again.Text == got.Text {
				text = fmt.Sprintf("Complete(%s) beside others: the answer to another question", quoteShort(asked))
			}
		}
		return text
	})
}

func completeModel(r *modelRun) string {
	ask := func(model string) (core.Completion, error) {
		return r.completer.Complete(r.ctx(), core.CompletionRequest{Prompt: secret + " the budget report moved to friday", MaxTokens: 64, Model: model})
	}
	var own [2]string
	for i := range own {
		got, err := ask("")
		if err != nil {
			return fmt.Sprintf("Complete: error %v, want none", err)
		}
		own[i] = got.Model
	}
	if own[0] != own[1] {
		return "" // an endpoint that chooses itself
	}
	if _, err := ask("another-model"); err != nil && strings.Contains(err.Error(), secret) { // it may be unknown
		return fmt.Sprintf("an error holds the prompt: %v", err)
	}
	if got, err := ask(""); err != nil || got.Model != own[0] {
		return fmt.Sprintf("Complete without a model, after another question named one: answered by %q, error %v, want %q", got.Model, err, own[0])
	}
	return ""
}

func completeCancel(r *modelRun) string {
	ctx, cancel := cancelled(r.ctx())
	defer cancel()
	_, err := r.complete(ctx, r.said()[0])
	if !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("Complete with a cancelled context: error %v, want context.Canceled", err)
	}
	if strings.Contains(err.Error(), secret) {
		return fmt.Sprintf("an error holds the prompt: %v", err)
	}
	return ""
}
