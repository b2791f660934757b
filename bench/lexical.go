package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	index "github.com/blevesearch/bleve_index_api"
	_ "modernc.org/sqlite"

	"github.com/contextengine/contextengine/backends/memory"
	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/strategies/lexical"
)

// searcher is something that finds entries by a sentence.
type searcher struct {
	name   string
	search func(ctx context.Context, text string, limit int) ([]string, error)
	// bytes is what the index takes besides the heap: files and pages.
	bytes func() (float64, error)
	close func() error
}

// opener builds an index of entries; what it is given as text is what it indexes.
type opener func(ctx context.Context, dir string, entries []core.Entry) (*searcher, error)

func openers() []opener { return []opener{openLexical, openBleve, openFTS5} }

// named is the text that everybody indexes: who spoke, and what.
func named(e core.Entry) string {
	if e.Message.Name != "" {
		return e.Message.Name + ": " + e.Text()
	}
	return e.Text()
}

// openLexical builds ours over a store that holds the entries already. A search reads what it finds from the store; the others only name it.
func openLexical(ctx context.Context, _ string, entries []core.Entry) (*searcher, error) {
	x, err := lexical.New(lexical.DefaultConfig())
	if err != nil {
		return nil, err
	}
	store := &held{Store: memory.New(), byID: make(map[string]int, len(entries)), entries: entries}
	for i := range entries {
		store.byID[entries[i].ID] = i
	}
	if err := x.Attach(store); err != nil {
		return nil, err
	}
	owner := entries[0].Agent
	return &searcher{
		name: "lexical",
		search: func(ctx context.Context, text string, limit int) ([]string, error) {
			hits, err := x.Search(ctx, core.SearchQuery{Scope: core.Scope{Agent: owner}, Text: text, Limit: limit})
			ids := make([]string, len(hits))
			for i, h := range hits {
				ids[i] = h.Entry.ID
			}
			return ids, err
		},
		bytes: func() (float64, error) { return 0, nil },
		close: x.Close,
	}, x.Load(ctx, owner)
}

// held is a store of entries that are in memory anyway, so that the heap's growth is the index's.
type held struct {
	core.Store
	entries []core.Entry
	byID    map[string]int
}

func (h *held) Get(_ context.Context, _ core.Scope, ids []string) ([]core.Entry, error) {
	out := make([]core.Entry, len(ids))
	for i, id := range ids {
		at, ok := h.byID[id]
		if !ok {
			return nil, fmt.Errorf("held: get %q: %w", id, core.ErrNotFound)
		}
		out[i] = h.entries[at]
	}
	return out, nil
}

func (h *held) Scan(_ context.Context, q core.ScanQuery) (core.Page, error) {
	at := 0
	if q.Cursor != "" {
		if _, err := fmt.Sscan(string(q.Cursor), &at); err != nil {
			return core.Page{}, err
		}
	}
	end := min(at+q.Limit, len(h.entries))
	page := core.Page{Entries: slices.Clone(h.entries[at:end])}
	if end < len(h.entries) {
		page.Next = core.Cursor(fmt.Sprint(end))
	}
	return page, nil
}

// openBleve builds bleve's default index, on disk, with its English analyser and BM25.
func openBleve(_ context.Context, dir string, entries []core.Entry) (*searcher, error) {
	m := bleve.NewIndexMapping()
	m.DefaultAnalyzer = en.AnalyzerName
	m.ScoringModel = index.BM25Scoring
	field := bleve.NewTextFieldMapping()
	field.Store, field.IncludeTermVectors, field.IncludeInAll, field.DocValues = false, false, false, false
	doc := bleve.NewDocumentStaticMapping()
	doc.AddFieldMappingsAt("text", field)
	m.DefaultMapping = doc
	path := filepath.Join(dir, "bleve")
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	x, err := bleve.New(path, m)
	if err != nil {
		return nil, err
	}
	for at := 0; at < len(entries); at += 1000 {
		batch := x.NewBatch()
		for _, e := range entries[at:min(at+1000, len(entries))] {
			if err := batch.Index(e.ID, map[string]string{"text": named(e)}); err != nil {
				return nil, errors.Join(err, x.Close())
			}
		}
		if err := x.Batch(batch); err != nil {
			return nil, errors.Join(err, x.Close())
		}
	}
	return &searcher{
		name: "bleve",
		search: func(ctx context.Context, text string, limit int) ([]string, error) {
			q := bleve.NewMatchQuery(text)
			q.SetField("text")
			res, err := x.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, limit, 0, false))
			if err != nil {
				return nil, err
			}
			var ids []string
			for _, h := range res.Hits {
				ids = append(ids, h.ID)
			}
			return ids, nil
		},
		bytes: func() (float64, error) { return onDisk(path) },
		close: x.Close,
	}, nil
}

// openFTS5 builds SQLite's full text index without a copy of the texts, with its Porter stemmer; a sentence is asked as words of which any may match.
func openFTS5(ctx context.Context, dir string, entries []core.Entry) (*searcher, error) {
	path := filepath.Join(dir, "fts5.db")
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		_ = os.Remove(name)
	}
	db, err := sql.Open("sqlite", path+"?_pragma=journal_mode(WAL)&_pragma=synchronous(NORMAL)&_pragma=cache_size(-65536)&_pragma=mmap_size(268435456)")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	fail := func(err error) (*searcher, error) { return nil, errors.Join(err, db.Close()) }
	if _, err := db.ExecContext(ctx, "CREATE VIRTUAL TABLE t USING fts5(text, content='', tokenize='porter unicode61')"); err != nil {
		return fail(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fail(err)
	}
	insert, err := tx.PrepareContext(ctx, "INSERT INTO t (rowid, text) VALUES (?, ?)")
	if err != nil {
		return fail(err)
	}
	for i := range entries {
		if _, err := insert.ExecContext(ctx, i, named(entries[i])); err != nil {
			return fail(err)
		}
	}
	if err := tx.Commit(); err != nil {
		return fail(err)
	}
	find, err := db.PrepareContext(ctx, "SELECT rowid FROM t WHERE t MATCH ? ORDER BY rank LIMIT ?")
	if err != nil {
		return fail(err)
	}
	return &searcher{
		name: "fts5",
		search: func(ctx context.Context, text string, limit int) ([]string, error) {
			words := strings.FieldsFunc(text, func(r rune) bool {
				return !unicode.IsLetter(r) && !unicode.IsNumber(r)
			})
			if len(words) == 0 {
				return nil, nil
			}
			rows, err := find.QueryContext(ctx, `"`+strings.Join(words, `" OR "`)+`"`, limit)
			if err != nil {
				return nil, err
			}
			defer rows.Close()
			var ids []string
			for rows.Next() {
				var at int
				if err := rows.Scan(&at); err != nil {
					return nil, err
				}
				ids = append(ids, entries[at].ID)
			}
			return ids, rows.Err()
		},
		bytes: func() (float64, error) {
			var pages, size float64
			err := errors.Join(db.QueryRow("PRAGMA page_count").Scan(&pages), db.QueryRow("PRAGMA page_size").Scan(&size))
			return pages * size, err
		},
		close: db.Close,
	}, nil
}

func onDisk(dir string) (float64, error) {
	n := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return float64(n), err
}

// lexicalPart compares the three at all sizes, and their recall.
func lexicalPart(ctx context.Context, b *board, o options) error {
	if err := recall(ctx, b, o); err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		b.note("recall was not measured: no data in %s", o.data)
	}
	for _, n := range sizes(1000, o.largest) {
		what := fmt.Sprintf("lexical/entries=%d", n)
		c := newCorpus(2)
		entries := make([]core.Entry, n)
		text := 0
		for i := range entries {
			entries[i] = c.entry()
			entries[i].Message.Raw = nil
			text += len(entries[i].Text())
		}
		rng := rand.New(rand.NewPCG(3, 4))
		queries := make([]string, 200)
		for i := range queries {
			queries[i] = sentence(rng, entries[rng.IntN(n)].Text())
		}
		for _, open := range openers() {
			if err := ctx.Err(); err != nil {
				return err
			}
			before := heap()
			var s *searcher
			build, err := timed(func() (err error) {
				s, err = open(ctx, o.dir, entries)
				return err
			})
			if err != nil {
				return err
			}
			beside, err := s.bytes()
			if err != nil {
				return err
			}
			for _, q := range queries[:3] { // caches fill
				if _, err := s.search(ctx, q, 10); err != nil {
					return err
				}
			}
			ops, took, err := repeat(2000, func(i int) error {
				_, err := s.search(ctx, queries[i%len(queries)], 10)
				return err
			})
			if err != nil {
				return err
			}
			taken := heap() - before // what searches leave behind counts
			if s.name == "lexical" { // the table of places is the store's
				taken -= float64(n) * 48
			}
			b.add(s.name, what, ops, append(took.per(ops), figure{"ns-build/entry", float64(build.cpu) / float64(n)},
				figure{"B-heap", max(taken, 0)}, figure{"B-disk", beside}, figure{"memory/text", (max(taken, 0) + beside) / float64(text)})...)
			if err := s.close(); err != nil {
				return err
			}
		}
		b.ratio(what, "ns/op", "fts5", "lexical", "10 at 100,000")
		b.ratio(what, "ns/op", "bleve", "lexical", "3 at 100,000")
	}
	return nil
}

// recall measures the share of the evidence that is among the ten best.
func recall(ctx context.Context, b *board, o options) error {
	all, err := conversations(o.data)
	if err != nil {
		return err
	}
	for _, open := range openers() {
		sum, n := 0.0, 0
		name := ""
		for _, c := range all {
			s, err := open(ctx, o.dir, c.entries)
			if err != nil {
				return err
			}
			name = s.name
			for _, q := range c.questions {
				ids, err := s.search(ctx, q.text, 10)
				if err != nil {
					return err
				}
				found := 0
				for _, id := range ids {
					if q.evidence[id] {
						found++
					}
				}
				sum += float64(found) / float64(len(q.evidence))
				n++
			}
			if err := s.close(); err != nil {
				return err
			}
		}
		b.add(name, "lexical/recall", n, figure{"recall@10", 100 * sum / float64(n)})
	}
	return nil
}
