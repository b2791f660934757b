package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

// size writes a number of bytes in the largest unit that leaves a figure before the point, in eight characters at most below 1000 TB.
func size(n int64) string {
	v, unit := float64(n), ""
	for _, u := range []string{"kB", "MB", "GB", "TB"} {
		if v < 1000 {
			break
		}
		v, unit = v/1000, u
	}
	if unit == "" {
		return strconv.FormatInt(n, 10) + " B"
	}
	return strconv.FormatFloat(v, 'f', 1, 64) + " " + unit
}

// parseSize reads a number of bytes: "500000", "500k", "20M", "1.5GB"; units are powers of 1000, with "i" of 1024.
func parseSize(flag, s string) (int64, error) {
	text := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "b")
	base := 1000.0
	if t, ok := strings.CutSuffix(text, "i"); ok {
		text, base = t, 1024
	}
	factor := 1.0
	if i := strings.IndexAny(text, "kmgt"); i >= 0 && i == len(text)-1 {
		for range strings.IndexByte("kmgt", text[i]) + 1 {
			factor *= base
		}
		text = text[:i]
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v*factor >= 1 && v*factor < 1e18) {
		return 0, fmt.Errorf("%s: %q is no size: give a number of bytes such as 500k, 20MB or 1.5GiB: %w", flag, s, core.ErrInvalid)
	}
	return int64(v * factor), nil
}

// parseAge reads a length of time: what Go reads, and days and weeks: "90d", "2w", "12h".
func parseAge(flag, s string) (time.Duration, error) {
	text, day := strings.TrimSpace(s), 24*time.Hour
	for suffix, unit := range map[string]time.Duration{"d": day, "w": 7 * day} {
		number, ok := strings.CutSuffix(text, suffix)
		if !ok {
			continue
		}
		if n, err := strconv.ParseFloat(number, 64); err == nil && n > 0 && n < 100_000 {
			return time.Duration(n * float64(unit)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("%s: %q is no length of time: give one such as 90d, 2w or 12h: %w", flag, s, core.ErrInvalid)
	}
	return d, nil
}

// parseMoment reads a point in time: a date, which begins at midnight UTC, or a date with a time.
func parseMoment(flag, s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: %q is no time: give a date such as 2026-01-31, or 2026-01-31T18:00:00Z: %w", flag, s, core.ErrInvalid)
}

// moment writes a point in time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
