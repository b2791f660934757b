package conformance_test

import (
	"testing"

	"github.com/contextengine/contextengine/conformance"
	"github.com/contextengine/contextengine/core"
)

func TestMatrixInTree(t *testing.T) {
	across := func(c *core.Config) { c.Recall.AcrossSessions = true }
	eager := func(c *core.Config) { c.RecentMessages, c.Compaction.Due, c.Failure = 2, 0.1, core.FailStrict }
	conformance.TestMatrix(t, []conformance.Combination{
		{Name: "none-archive-memory", Open: setup{compactor: "archive"}.open},
		{Name: "words-archive-memory", Open: setup{compactor: "archive", retriever: words, change: across}.open, AcrossSessions: true},
		{Name: "words-delegate-memory", Open: setup{compactor: "delegate", retriever: words}.open},
		{Name: "words-summary-memory", Open: setup{compactor: "summary", retriever: words, change: eager}.open},
	}, counter(t))
}
