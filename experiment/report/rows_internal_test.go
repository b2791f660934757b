package report

import (
	"slices"
	"testing"
)

func TestWrapped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		room int
		want []string
	}{
		{"temporal", 20, []string{"temporal"}},
		{"hybrid(lexical)+memory limit=50", 25, []string{"hybrid(lexical)+memory", "limit=50"}},
		{"hybrid(lexical+vector)+memory", 25, []string{"hybrid(lexical+vector)+", "memory"}},
		{"hybrid(lexical)+memory k1=0.9 b=0.4 namedBoost=1.5", 24, []string{"hybrid(lexical)+memory", "k1=0.9 b… namedBoost=1.5"}},
		{"知知知知知知知知知知知知", 5, []string{"知知知知知", "知…知知知"}},
		{"  a\nb ", 5, []string{"a b"}},
		{"", 5, []string{""}},
	} {
		if got := wrapped(c.name, c.room); !slices.Equal(got, c.want) {
			t.Errorf("wrapped(%q, %d) = %q, want %q", c.name, c.room, got, c.want)
		}
	}
}

func TestSoft(t *testing.T) {
	t.Parallel()
	if got, want := string(soft(`<b>a+b</b> "9 %" & c`)), "&lt;b&gt;a+<wbr>b&lt;/<wbr>b&gt; &#34;9\u00a0%&#34; &amp; c"; got != want {
		t.Errorf("soft() = %q, want %q", got, want)
	}
}
