package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/experiment/sweep"
	"github.com/contextengine/contextengine/registry"
)

// commandLine writes down a command so that it can be run again: its name, its arguments and the flags that were given. What a flag sets for a key that
// holds a secret is left out.
func commandLine(cmd *cobra.Command, args []string) string {
	out := []string{cmd.CommandPath()}
	for _, a := range args {
		out = append(out, quoted(a))
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
			if f.Value.Type() == "stringSlice" || f.Value.Type() == "intSlice" || f.Value.Type() == "float64Slice" {
				values = []string{strings.Join(values, ",")}
			}
		}
		for _, v := range values {
			switch key, value, isSetting := strings.Cut(v, "="); {
			case f.Value.Type() == "bool" && v == "true":
				out = append(out, "--"+f.Name)
			case f.Name == "set" && isSetting:
				out = append(out, "--set "+quoted(key+"="+withoutSecret(key, value)))
			default:
				out = append(out, "--"+f.Name+" "+quoted(v))
			}
		}
	})
	return strings.Join(out, " ")
}

// quoted writes an argument as a shell reads it.
func quoted(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-,=:@+%", r)
	}
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !plain(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// withoutSecret returns a value of a key as reports may show it, by the rules of the registry.
func withoutSecret(key, value string) string {
	last := key[strings.LastIndexByte(key, '.')+1:]
	var shown map[string]any
	if err := json.Unmarshal([]byte(registry.Choice{Options: map[string]any{last: value}}.String()), &shown); err != nil {
		return "***"
	}
	if v, ok := shown[last]; ok {
		return fmt.Sprint(v)
	}
	return "***"
}

// shownPoint is a point of a sweep as reports may show it.
func shownPoint(point sweep.Point) sweep.Point {
	out := slices.Clone(point)
	for i := range out {
		out[i].Text = withoutSecret(out[i].Key, out[i].Text)
	}
	return out
}
