package registry

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"

	"github.com/contextengine/contextengine/core"
)

// EnvPrefix is what the names of environment variables with configuration begin with.
const EnvPrefix = "CONTEXTENGINE_"

// envOther are variables with the prefix that are no keys of the configuration: where it is, what stores read themselves, and what tests need.
var envOther = [...]string{
	EnvPrefix + "CONFIG", EnvPrefix + "POSTGRES_DSN", EnvPrefix + "POSTGRES_REPLICA_DSN",
	EnvPrefix + "DATA", EnvPrefix + "CI", EnvPrefix + "PGLITE", EnvPrefix + "POSTGRES_BIN", EnvPrefix + "OPENCLAW", EnvPrefix + "BROWSER", EnvPrefix + "SHOTS",
}

// Source is a place that configuration comes from. Make one with File, HostFile, Bytes, Values or Environ.
type Source struct {
	name string
	host bool
	read func() (map[string]any, error)
}

// File reads a file in the format its name ends in: .json, .json5, .yaml, .yml or .toml. Whether it is a host's
// configuration is seen from its keys, see Load.
func File(name string) Source {
	return Source{name: name, read: func() (map[string]any, error) {
		info, err := os.Stat(name)
		if err != nil {
			return nil, fmt.Errorf("open: %w", errors.Unwrap(err))
		}
		if info.IsDir() {
			return nil, fmt.Errorf("is a folder: name a file: %w", core.ErrInvalid)
		}
		parser, err := parserFor(filepath.Ext(name))
		if err != nil {
			return nil, err
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, openError(err)
		}
		defer func() { _ = f.Close() }()
		data, err := io.ReadAll(io.LimitReader(f, maxSize+1))
		if err != nil {
			return nil, openError(err)
		}
		return parse(data, parser)
	}}
}

// HostFile is File for a host's configuration even where nothing in it speaks of context engines.
func HostFile(name string) Source {
	s := File(name)
	s.host = true
	return s
}

// Bytes reads data in a format: "json", "json5", "yaml" or "toml". Name appears in errors.
func Bytes(name, format string, data []byte) Source {
	return Source{name: name, read: func() (map[string]any, error) {
		parser, err := parserFor("." + format)
		if err != nil {
			return nil, err
		}
		return parse(data, parser)
	}}
}

// Values takes what a program holds, as a file would: nested map[string]any, []any and scalars. Name appears in errors.
func Values(name string, values map[string]any) Source {
	return Source{name: name, read: func() (map[string]any, error) {
		plain, err := normalized(values)
		if err != nil {
			return nil, err
		}
		return load(confmap.Provider(plain, ""), nil)
	}}
}

// HostValues is Values for a host's configuration, as HostFile is for File.
func HostValues(name string, values map[string]any) Source {
	s := Values(name, values)
	s.host = true
	return s
}

// Environ reads variables of the form NAME=value, such as os.Environ returns, whose names begin with EnvPrefix. What
// follows is a key: "__" goes down a level, and a word after "_" is capitalised, so that CONTEXTENGINE_WINDOW__CLIP_SHARE
// is window.clipShare. A level with a lower-case letter in it is taken as it is. Lists are separated by commas.
func Environ(environ []string) Source {
	return Source{name: "environment", read: func() (map[string]any, error) {
		flat, err := env.Provider("", env.Opt{
			Prefix:      EnvPrefix,
			EnvironFunc: func() []string { return environ },
			TransformFunc: func(k, v string) (string, any) {
				if slices.Contains(envOther[:], k) {
					return "", nil
				}
				return strings.TrimPrefix(k, EnvPrefix), envText(v)
			},
		}).Read()
		if err != nil {
			return nil, err
		}
		return nest(flat)
	}}
}

// nest turns the names of variables into keys.
func nest(flat map[string]any) (map[string]any, error) {
	out := make(map[string]any)
	// shorter names first: STORE=sqlite beside STORE__PATH=x is the type of what the longer ones configure
	for _, name := range slices.Sorted(maps.Keys(flat)) {
		levels := strings.Split(name, "__")
		if len(levels) > maxDepth {
			return nil, errTooDeep
		}
		m := out
		for i, level := range levels {
			k := camel(level)
			if k == "" {
				return nil, fmt.Errorf("%s%s: a level of the key is empty: %w", EnvPrefix, clip(name), core.ErrInvalid)
			}
			if i == len(levels)-1 {
				if into, ok := m[k].(map[string]any); ok {
					m, k = into, typeKey
				}
				m[k] = flat[name]
				break
			}
			into, ok := m[k].(map[string]any)
			if !ok {
				into = make(map[string]any)
				if m[k] != nil {
					into[typeKey] = m[k]
				}
				m[k] = into
			}
			m = into
		}
	}
	return out, nil
}

func camel(level string) string {
	if strings.ContainsFunc(level, unicode.IsLower) {
		return level
	}
	var b strings.Builder
	for i, word := range strings.Split(strings.ToLower(level), "_") {
		if i > 0 && word != "" {
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
	}
	return b.String()
}

// openError drops the path from a file error: the source's name stands in front of it anyway.
func openError(err error) error {
	if p := (*os.PathError)(nil); errors.As(err, &p) {
		return fmt.Errorf("%s: %w", p.Op, p.Err)
	}
	return err
}
