// Package compacting holds what compactors share: which of the oldest entries can go as a whole (Units), what the rest
// costs (CostOf, SummaryCost), and how a text is cut to a number of tokens (Clip).
package compacting
