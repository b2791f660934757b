package tiktoken

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2"

	"github.com/contextengine/contextengine/internal/needs"
)

// TestClassesEqualExpressions asks the library's expressions for the class of every character there is.
func TestClassesEqualExpressions(t *testing.T) {
	t.Parallel()
	var every []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && (!needs.Race || r < 0x3000 || r%7 == 0) {
			every = append(every, r)
		}
	}
	c := loadClasses()
	for _, tt := range []struct {
		class      class
		expression string
	}{
		{upper, `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+`},
		{lower, `[\p{Ll}\p{Lm}\p{Lo}\p{M}]+`},
		{letter, `\p{L}+`},
		{number, `\p{N}+`},
		{blank, `\s+`},
		{newline, `[\r\n]+`},
		{visible, `[^\s\p{L}\p{N}]+`},
		{lead, `[^\r\n\p{L}\p{N}]+`},
	} {
		want := make([]bool, len(every))
		found := 0
		expression := regexp2.MustCompile(tt.expression, regexp2.None)
		m, err := expression.FindRunesMatch(every)
		for ; m != nil && err == nil; m, err = expression.FindNextMatch(m) {
			for i := range m.Length {
				want[m.Index+i] = true
				found++
			}
		}
		if err != nil || found == 0 {
			t.Fatalf("%s: %d characters, error %v", tt.expression, found, err)
		}
		for i, r := range every {
			if got := c.of(r)&tt.class != 0; got != want[i] {
				t.Errorf("%U in %s = %v, want %v", r, tt.expression, got, want[i])
			}
		}
	}
}
