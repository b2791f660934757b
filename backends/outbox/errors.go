package outbox

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/contextengine/contextengine/core"
)

// ErrFull means that the backlog is at one of its bounds. It is a core.ErrUnavailable; the text names the bound.
var ErrFull = fmt.Errorf("outbox is full: %w", core.ErrUnavailable)

// ErrDamaged means that the journal is not what was written. The text names the file and the offset; see Config.Recover.
var ErrDamaged = errors.New("damaged")

// failed puts the operation in front of its cause.
func failed(op, id string, cause error) error {
	if id == "" {
		return fmt.Errorf("outbox: %s: %w", op, cause)
	}
	return fmt.Errorf("outbox: %s %q: %w", op, id, cause)
}

// permanent reports whether the same request will be refused again. Credentials and connections are the operator's to mend: what
// fails for them is tried until it succeeds.
func permanent(err error) bool {
	for _, passing := range []error{core.ErrUnavailable, core.ErrAuth, core.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, passing) {
			return false
		}
	}
	return errors.Is(err, core.ErrInvalid) || errors.Is(err, core.ErrConflict) || errors.Is(err, errors.ErrUnsupported)
}

// reasonOf names the kind of a refusal. It is all of an error that the journal holds.
func reasonOf(err error) string {
	switch {
	case errors.Is(err, core.ErrInvalid):
		return "invalid"
	case errors.Is(err, core.ErrConflict):
		return "conflict"
	case errors.Is(err, errors.ErrUnsupported):
		return "unsupported"
	}
	return "refused"
}

// askedWait returns how long an error asks to wait before the next try.
func askedWait(err error) time.Duration {
	var asked interface{ RetryAfter() time.Duration }
	if errors.As(err, &asked) {
		return min(max(asked.RetryAfter(), 0), maxAsked)
	}
	return 0
}

// maxAsked bounds what a remote can ask for.
const maxAsked = time.Hour

const (
	// maxErrorText bounds what is shown of an error, in bytes.
	maxErrorText = 300
	// echoWindow is how many bytes of an entry an error may share with it by chance.
	echoWindow = 16
)

// scrub returns what can be shown of a remote's error: without addresses' secrets, credentials, or anything of the
// entries it was about.
func scrub(err error, about []core.Entry) string {
	if err == nil {
		return ""
	}
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(err.Error(), "?"))
	if echoes(text, about) {
		return reasonOrKind(err) + " (the remote's text repeats content)"
	}
	text = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s"]+`).ReplaceAllStringFunc(text, func(s string) string {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			return u.Scheme + "://" + u.Host
		}
		return "[address]"
	})
	text = regexp.MustCompile(`(?i)(bearer\s+|(?:api[-_ ]?key|token|password|secret|authorization)["']?\s*[:=]\s*)\S+`).ReplaceAllString(text, "${1}[removed]")
	if len(text) > maxErrorText {
		text = strings.ToValidUTF8(text[:maxErrorText], "") + "…"
	}
	return text
}

func reasonOrKind(err error) string {
	for _, kind := range []error{core.ErrUnavailable, core.ErrAuth, core.ErrNotFound, core.ErrClosed} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}
	return reasonOf(err)
}

// echoes reports whether text shares echoWindow bytes with an entry's content, or holds all of a shorter one. Naming its id is no echo.
func echoes(text string, about []core.Entry) bool {
	for _, e := range about {
		contents := []string{e.Text(), string(e.Message.Raw)}
		for _, v := range e.Meta {
			contents = append(contents, v)
		}
		for _, content := range contents {
			short := strings.TrimSpace(content)
			// A content of a few bytes is in any text by chance.
			if n := len(short); n >= 4 && n < echoWindow && strings.Contains(text, short) && !strings.Contains(e.ID, short) {
				return true
			}
			for i := 0; i+echoWindow <= len(text) && len(content) >= echoWindow; i++ {
				if window := text[i : i+echoWindow]; strings.Contains(content, window) && !strings.Contains(e.ID, window) {
					return true
				}
			}
		}
	}
	return false
}
