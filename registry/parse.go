package registry

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/json"
	"github.com/knadh/koanf/parsers/toml/v2"
	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/rawbytes"
	"github.com/knadh/koanf/v2"
	"github.com/titanous/json5"

	"github.com/contextengine/contextengine/core"
)

// Bounds of a configuration file: no real one comes near, and parsers stay cheap.
const (
	maxSize  = 1 << 20
	maxDepth = 64
)

var (
	errTooLarge = fmt.Errorf("larger than 1 MiB: %w", core.ErrInvalid)
	errTooDeep  = fmt.Errorf("nested deeper than %d levels: %w", maxDepth, core.ErrInvalid)
)

// parserFor returns the parser of a format, which is named by the end of files in it.
func parserFor(ext string) (koanf.Parser, error) {
	ext = strings.ToLower(ext)
	switch ext {
	case ".json":
		return guarded{json.Parser(), ext}, nil
	case ".json5":
		return guarded{json5Parser{}, ext}, nil
	case ".yaml", ".yml":
		return guarded{yaml.Parser(), ext}, nil
	case ".toml":
		return guarded{toml.Parser(), ext}, nil
	}
	return nil, unknown("format", strings.TrimPrefix(ext, "."), []string{"json", "json5", "toml", "yaml", "yml"})
}

// json5Parser makes koanf read JSON5.
type json5Parser struct{}

func (json5Parser) Unmarshal(b []byte) (map[string]any, error) {
	var out map[string]any
	err := json5.Unmarshal(b, &out)
	return out, err
}

func (json5Parser) Marshal(map[string]any) ([]byte, error) { return nil, errors.ErrUnsupported }

// guarded is a parser whose values are in the types that the decoder knows, whose errors repeat nothing of the file, and that passes over nothing in it.
type guarded struct {
	koanf.Parser
	format string
}

func (g guarded) Unmarshal(b []byte) (map[string]any, error) {
	values, err := g.Parser.Unmarshal(b)
	if err != nil && strings.Contains(err.Error(), "cannot unmarshal") { // all parsers say so of what is no table
		return nil, fmt.Errorf("a configuration is keys with values, and this is a list or a single value: %w", core.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", saying(err, b), core.ErrInvalid)
	}
	if err := overlooked(g.format, b); err != nil {
		return nil, err
	}
	// koanf flattens what it gets, which is quadratic in depth: look before it does
	return normalized(values)
}

// parse reads a whole file.
func parse(data []byte, parser koanf.Parser) (map[string]any, error) {
	if len(data) > maxSize {
		return nil, errTooLarge
	}
	if tooNested(data) {
		return nil, errTooDeep
	}
	data = trimBOM(data)
	if len(strings.TrimSpace(string(data))) == 0 {
		return map[string]any{}, nil
	}
	return load(rawbytes.Provider(data), parser)
}

func load(provider koanf.Provider, parser koanf.Parser) (map[string]any, error) {
	// no key holds the delimiter: keys are taken whole, dots and all
	k := koanf.New("\x00")
	if err := k.Load(provider, parser); err != nil {
		return nil, err
	}
	return k.Raw(), nil
}

func normalized(values map[string]any) (map[string]any, error) {
	v, err := normalize(values, 0)
	if err != nil {
		return nil, err
	}
	m, _ := v.(map[string]any)
	return m, nil
}

func trimBOM(data []byte) []byte {
	return []byte(strings.TrimPrefix(string(data), "\ufeff"))
}

// tooNested reports whether brackets are open more than a thousand deep, which some parsers follow by recursion. Brackets
// in strings count too; no configuration has that many.
func tooNested(data []byte) bool {
	depth := 0
	for _, b := range data {
		switch b {
		case '[', '{':
			if depth++; depth > 1000 {
				return true
			}
		case ']', '}':
			depth = max(0, depth-1)
		}
	}
	return false
}

// normalize returns v made of map[string]any, []any and scalars only.
func normalize(v any, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errTooDeep
	}
	switch v.(type) {
	case nil, string, bool, envText, time.Time:
		return v, nil
	}
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Map:
		out := make(map[string]any, r.Len())
		for it := r.MapRange(); it.Next(); {
			e, err := normalize(it.Value().Interface(), depth+1)
			if err != nil {
				return nil, err
			}
			out[fmt.Sprint(it.Key().Interface())] = e
		}
		return out, nil
	case reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			e, err := normalize(r.Index(i).Interface(), depth+1)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, nil
	}
	return v, nil
}
