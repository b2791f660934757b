package postgres_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
)

// wordsBefore makes of the tables of this program what the version before its last step had: words as text. Every entry is of the agent
// "ann", whose word stands in it.
const wordsBefore = `
ALTER TABLE {s}.entries DROP COLUMN words;
ALTER TABLE {s}.entries ADD COLUMN words tsvector NOT NULL DEFAULT '';
ALTER TABLE {s}.entries ALTER COLUMN words DROP DEFAULT;
UPDATE {s}.entries SET words = strip(to_tsvector('pg_catalog.english', '1 january 1970 text of ' || replace(convert_from(id, 'UTF8'), '-', ' ')))
	|| array_to_tsvector(ARRAY['@49915e0d7d4b402e']) WHERE type = 'message';
CREATE INDEX entries_words ON {s}.entries USING gin (words);
DELETE FROM {s}.settings WHERE name = 'words';
DELETE FROM {s}.schema_version WHERE part = 'base' AND version = 4`

// TestWordsOfOlderTables: what an older program stored is found as before, its keys are known, and what it hid stays hidden.
func TestWordsOfOlderTables(t *testing.T) {
	t.Parallel()
	for name, partitions := range map[string]int{"one table": 1, "partitions": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := fresh(t)
			cfg.Partitions = partitions
			s := open(t, cfg)
			mustAppend(t, s, entries(ann, 0, 40)...)
			if err := s.Update(t.Context(), ann.Scope(), "ann-one-7", core.Change{Type: core.TypeHeartbeat}); err != nil {
				t.Fatal(err)
			}
			query := core.SearchQuery{Scope: ann.Scope(), Text: "text 11", Limit: 50}
			before, err := s.Search(t.Context(), query)
			if err != nil {
				t.Fatal(err)
			}
			stored := all(t, s, ann.Scope())
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			servers.Plain(t).Exec(t, cfg.DSN, strings.ReplaceAll(wordsBefore, "{s}", cfg.Schema))

			s = open(t, cfg)
			after, err := s.Search(t.Context(), query)
			if err != nil || len(after) != 39 || after[0].Entry.ID != "ann-one-11" {
				t.Fatalf("Search: %d hits, %v, want the 39 that are messages, ann-one-11 first", len(after), err)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("Search (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(stored, all(t, s, ann.Scope())); diff != "" {
				t.Errorf("entries (-before +after):\n%s", diff)
			}
			if res, err := s.Append(t.Context(), entries(ann, 39, 41)); err != nil || res.Duplicates != 1 {
				t.Errorf("Append of one that is there and one that is not: %d duplicates, %v", res.Duplicates, err)
			}
		})
	}
}
