package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/questions"
	"github.com/contextengine/contextengine/experiment/recall"
	"github.com/contextengine/contextengine/experiment/sweep"
	"github.com/contextengine/contextengine/internal/pathflag"
)

// evaluateFlags are the flags of evaluate.
type evaluateFlags struct {
	configs, retrievers, stores []string
	// settings are those of --set.
	settings   []string
	parts      bool
	budgets    []string
	windows    []string
	sessions   string
	depths     []int
	candidates int
	ownLimit   bool
	pack       string
	seed       uint64
	workers    int
	resume     string
	json       bool
	details    string
	html       string
	force      bool
	measures   []string
}

const datasetHelp = `DATASET is a LoCoMo file, a BEAM folder (one chat with chat.json and pq.json, or a folder of such), or a file of JSON lines:
  {"conversation":"c1","session":"monday","id":"m1","role":"user","name":"Ana","time":"2025-05-05T09:00:00Z","text":"The boat is called Wren."}
  {"conversation":"c1","question":"What is the boat called?","answer":"Wren","category":"names","evidence":["m1"]}
A line with "text" is a message: "id" and "text" are required. A line with "question" is a question: "question" and "evidence", the ids of the
messages that hold the answer, are required.`

// How the sessions of a conversation are taken for windows.
const (
	sessionsJoined = "joined"
	sessionsKept   = "kept"
)

const evaluateProtocol = `Each conversation is imported into the configured store through the engine, and the engine's retriever is asked every question. Evidence
recall is the share of the messages with the answer that are found: R@10 among the first 10 candidates, 2k among what is packed into 2,000 tokens,
greedily in rank order, skipping what does not fit; a token is ceil(1.3 x words) of "speaker: text". Figures are percent, means over questions;
"±" is half the width of the 95 % interval over conversations. Every later configuration is compared with the first, question by question.
The memory store is used where none is chosen, and a file store always gets a file of its own, which is removed; what is stored elsewhere is erased again.
So that the budget is what bounds the measure, a retriever's own "limit" is raised to --candidates unless --own-limit is given.`

func (a *app) evaluateCmd() *cobra.Command {
	var f evaluateFlags
	cmd := &cobra.Command{
		Use:   "evaluate DATASET",
		Short: "Measure how much of what answers questions is recalled",
		Long: "evaluate asks the retrievers of one or more configurations the questions of a data set, and says what they find.\n\n" +
			datasetHelp + "\n\n" + evaluateProtocol + "\n\n" +
			"--set tries every combination of values. With --resume what is finished is kept in a file and not measured again, as long as configuration, data and\n" +
			"program are the same; results during which a part failed are measured again.\n\n" + evaluateColumns + "\n\n" + exitHelp,
		Example: `  contextengine evaluate locomo-dev.json
  contextengine evaluate beam/ --config a.yaml --config b.yaml --html report.html --details questions.jsonl
  contextengine evaluate locomo-dev.json --store memory,sqlite,postgres --parts
  contextengine evaluate locomo-dev.json --set searchers.lexical.k1=0.7,0.9,1.2 --set retriever.hybrid.shortPrompt=0,24 --resume sweep.jsonl`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return failed(a.evaluate(cmd.Context(), f, args[0], commandLine(cmd, args)))
		},
	}
	flags := cmd.Flags()
	pathflag.SliceVar(flags, &f.configs, "config", "configuration file, JSON, JSON5, YAML or TOML; may be given several times (default: the file that CONTEXTENGINE_CONFIG names, or the defaults)")
	flags.StringSliceVar(&f.retrievers, "retriever", nil, "retrievers instead of the configured one")
	flags.StringSliceVar(&f.stores, "store", nil, "stores instead of the configured one")
	flags.StringArrayVar(&f.settings, "set", nil, "key=value,value,...: try these values of a key of the configuration; may be given several times, for every combination")
	flags.BoolVar(&f.parts, "parts", false, "also measure each searcher of a configuration alone, the store's own search among them")
	flags.StringSliceVar(&f.budgets, "budget", nil, "token budgets to measure recall at (default 1k,2k,4k,8k)")
	flags.StringSliceVar(&f.windows, "window", nil, "token budgets of windows: measure what of the evidence stands in the window that is assembled for each question, such as 2k,8k")
	flags.StringVar(&f.sessions, "sessions", sessionsJoined, "with --window: joined (a conversation is one session) or kept (the question is asked in its last session)")
	flags.IntSliceVar(&f.depths, "depth", nil, "numbers of candidates to measure recall at (default 5,10,25,50)")
	flags.IntVar(&f.candidates, "candidates", 1000, "how many candidates the retriever is asked for")
	flags.BoolVar(&f.ownLimit, "own-limit", false, "leave the retriever's own limit of candidates as it is configured")
	flags.StringVar(&f.pack, "pack", "", "what is packed of a message: message (all of it) or passage (what the retriever quotes) (default: message for LoCoMo, else passage)")
	flags.StringSliceVar(&f.measures, "verdict", []string{"R@10", "2k"}, "measures for which a verdict is printed; where none of them is measured, the first depth and the first budget")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the intervals")
	flags.IntVar(&f.workers, "workers", 0, "how many configurations are measured at once; latency is best taken with 1 (default: one for each processor)")
	pathflag.Var(flags, &f.resume, "resume", "", "file that keeps finished results, to go on from after an interruption")
	pathflag.Var(flags, &f.details, "details", "", "file for one JSON line for each question and configuration")
	pathflag.Var(flags, &f.html, "html", "", "write a report with charts to this file, which works offline")
	flags.BoolVar(&f.force, "force", false, "overwrite the files of --html and --details if they exist")
	a.wideFlag(cmd)
	flags.BoolVar(&f.json, "json", false, "print JSON instead of tables")
	return cmd
}

func (a *app) evaluate(ctx context.Context, f evaluateFlags, path, command string) (err error) {
	plan := recall.Plan{
		Depths: f.depths, Candidates: f.candidates, Unit: questions.Unit(f.pack), Seed: f.seed, Workers: f.workers, Version: revision(),
	}
	if f.workers < 0 {
		return fmt.Errorf("--workers: must not be negative: %w", core.ErrInvalid)
	}
	if len(f.budgets) > 0 {
		if plan.Budgets, err = allTokens(f.budgets); err != nil {
			return err
		}
	}
	if plan.Windows, err = allTokens(f.windows); err != nil {
		return err
	}
	if plan.Joined = f.sessions == sessionsJoined; !plan.Joined && f.sessions != sessionsKept {
		return unknownName("value of --sessions", f.sessions, []string{sessionsJoined, sessionsKept})
	}
	if len(plan.Windows) > 0 {
		if len(f.budgets) > 0 || len(f.depths) > 0 || f.html != "" {
			return fmt.Errorf("--window: measures windows alone: leave --budget, --depth and --html out: %w", core.ErrInvalid)
		}
		f.ownLimit = true // the window is measured as it is
	}
	if plan.Unit != "" && plan.Unit != questions.WholeMessage && plan.Unit != questions.Passage {
		return unknownName("value of --pack", f.pack, []string{string(questions.WholeMessage), string(questions.Passage)})
	}
	for _, out := range f.files() {
		if err := out.check(); err != nil {
			return err
		}
	}
	err = a.saying("reading "+path, func() error {
		plan.Dataset, err = questions.Open(path)
		return err
	})
	if err != nil {
		return &exitError{code: ExitFailure, err: err} // as every verb that reads a file
	}
	files, err := os.MkdirTemp("", "contextengine-evaluate")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(files)) }()
	if plan.Arms, err = a.evaluated(ctx, f, files); err != nil {
		return err
	}
	if f.resume != "" {
		if err := (outFile{flag: "--resume", name: f.resume, force: true}).check(); err != nil {
			return err
		}
		journal, err := sweep.OpenJournal(f.resume)
		if err != nil {
			return err
		}
		defer func() { _ = journal.Close() }() // every result is on the disk already
		if journal.Torn {
			fmt.Fprintf(a.Stderr, "warning: %s: the last line was not complete and is left out\n", f.resume)
		}
		plan.Journal = journal
	}
	bar := newProgress(a.Stderr, "questions")
	plan.Progress = bar.set
	result, err := recall.Run(ctx, plan)
	bar.done()
	if err != nil {
		return err
	}
	return a.evaluation(result, f, command)
}

// evaluation prints a result and writes it where files are asked for, and returns what it means.
func (a *app) evaluation(result *recall.Result, f evaluateFlags, command string) error {
	f.measures = judged(result.Measures, f.measures)
	if len(f.windows) > 0 {
		f.measures = nil
	}
	if f.html != "" {
		if err := a.evaluatePage(f, command, result); err != nil {
			return err
		}
	}
	if f.details != "" {
		if err := a.save(f.out("--details", f.details), func(w io.Writer) error { return encodeDetails(w, result) }); err != nil {
			return err
		}
	}
	if f.json {
		short := *result
		short.Arms = append([]recall.ArmResult(nil), result.Arms...)
		for i := range short.Arms {
			short.Arms[i].Questions, short.Arms[i].Windows = nil, nil
		}
		if err := writeJSON(a.Stdout, short); err != nil {
			return err
		}
	} else if err := writeEvaluation(a.Stdout, a.fit(), result, f.measures); err != nil {
		return err
	}
	var errs []error
	for _, arm := range result.Arms {
		if arm.Error != "" {
			errs = append(errs, fmt.Errorf("%s: %s", arm.Name, arm.Error))
		}
	}
	if len(errs) > 0 {
		return &exitError{code: ExitFailure, err: errors.Join(errs...)}
	}
	return nil
}

// judged returns the names that there are measures for; where there is none, the first measure of each kind gets a verdict.
func judged(measures []recall.Measure, names []string) []string {
	var out []string
	for _, name := range names {
		if slices.ContainsFunc(measures, func(m recall.Measure) bool { return m.Name == name }) {
			out = append(out, name)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, kind := range []string{recall.ByDepth, recall.ByBudget} {
		if i := slices.IndexFunc(measures, func(m recall.Measure) bool { return m.Kind == kind }); i >= 0 {
			out = append(out, measures[i].Name)
		}
	}
	return out
}

// files are those that are written in the end.
func (f *evaluateFlags) files() []outFile {
	var out []outFile
	for flag, name := range map[string]string{"--html": f.html, "--details": f.details} {
		if name != "" {
			out = append(out, f.out(flag, name))
		}
	}
	return out
}

func (f *evaluateFlags) out(flag, name string) outFile {
	return outFile{flag: flag, name: name, force: f.force}
}

// encodeDetails writes a line for each question and arm.
func encodeDetails(w io.Writer, result *recall.Result) error {
	out := bufio.NewWriter(w)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	for _, arm := range result.Arms {
		for _, q := range arm.Windows {
			if err := e.Encode(struct {
				Arm string `json:"arm"`
				recall.WindowQuestion
			}{arm.Name, q}); err != nil {
				return fmt.Errorf("--details: %w", err)
			}
		}
		for _, q := range arm.Questions {
			named := make(map[string]float64, len(q.Recall))
			for i, m := range result.Measures {
				named[m.Name] = q.Recall[i]
			}
			if err := e.Encode(struct {
				Arm string `json:"arm"`
				recall.QuestionResult
				Recall map[string]float64 `json:"recall"`
			}{arm.Name, q, named}); err != nil {
				return fmt.Errorf("--details: %w", err)
			}
		}
	}
	return out.Flush()
}
