package cli

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpWidth is the width that every help text keeps to, in characters.
const helpWidth = 80

// helping makes the help of a command and of those below it fit a terminal of 80 columns.
func helping(root *cobra.Command) {
	flags := strings.NewReplacer(
		".LocalFlags.FlagUsages", fmt.Sprintf(".LocalFlags.FlagUsagesWrapped %d", helpWidth),
		".InheritedFlags.FlagUsages", fmt.Sprintf(".InheritedFlags.FlagUsagesWrapped %d", helpWidth),
	)
	root.SetUsageTemplate(flags.Replace(root.UsageTemplate()))
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		fmt.Fprint(cmd.OutOrStdout(), reflow(strings.TrimSpace(text), helpWidth)+"\n\n"+reflow(cmd.UsageString(), helpWidth))
	})
}

// described is a line of a list: a name, and behind two blanks what it is.
var described = regexp.MustCompile(`^ +\S.*?  +`)

// reflow breaks a text into lines of at most so many characters. Lines that begin without a blank are paragraphs; of those that begin with some, lists hang
// below what they say, and commands stay whole.
func reflow(text string, width int) string {
	var out, paragraph []string
	flush := func() {
		out = append(out, wrap(strings.Join(paragraph, " "), width)...)
		paragraph = nil
	}
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == "":
			flush()
			out = append(out, "")
		case line[0] != ' ':
			if paragraph = append(paragraph, line); strings.HasSuffix(line, ":") {
				flush()
			}
		default:
			flush()
			name := described.FindString(line)
			if name == "" || utf8.RuneCountInString(line) <= width {
				out = append(out, line)
				continue
			}
			lines := wrap(line[len(name):], width-utf8.RuneCountInString(name))
			for i, l := range lines {
				if i > 0 {
					name = strings.Repeat(" ", utf8.RuneCountInString(name))
				}
				out = append(out, name+l)
			}
		}
	}
	flush()
	return strings.Join(out, "\n")
}

// wrap breaks a text at its blanks; nothing comes of an empty one.
func wrap(text string, width int) []string {
	var out []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			out, line = append(out, line), word
		default:
			line += " " + word
		}
	}
	if line != "" {
		out = append(out, line)
	}
	return out
}
