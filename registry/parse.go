package registry

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
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

func parserFor(ext string) (koanf.Parser, error) {
	switch strings.ToLower(ext) {
	case ".json":
		return json.Parser(), nil
	case ".json5":
		return json5Parser{}, nil
	case ".yaml", ".yml":
		return yaml.Parser(), nil
	case ".toml":
		return toml.Parser(), nil
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

// quoted is what a parser repeats from the file, which may be a secret.
var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|'[^']{2,}'")

// guarded is a parser whose values are in the types that the decoder knows, and whose errors repeat nothing of the file.
type guarded struct{ koanf.Parser }

func (g guarded) Unmarshal(b []byte) (map[string]any, error) {
	values, err := g.Parser.Unmarshal(b)
	if err != nil && strings.Contains(err.Error(), "cannot unmarshal") { // all parsers say so of what is no table
		return nil, fmt.Errorf("a configuration is keys with values, and this is a list or a single value: %w", core.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("%s%s: %w", placeOf(err, b), quoted.ReplaceAllString(err.Error(), "…"), core.ErrInvalid)
	}
	// koanf flattens what it gets, which is quadratic in depth: look before it does
	return normalized(values)
}

// placeOf says where in a file a parser stopped, as "line 3, column 7: "; it is empty for parsers whose errors say that themselves.
func placeOf(err error, b []byte) string {
	var offset int64
	if e, ok := errors.AsType[interface {
		error
		Position() (row, column int)
	}](err); ok { // TOML
		row, column := e.Position()
		return fmt.Sprintf("line %d, column %d: ", row, column)
	} else if e, ok := errors.AsType[*stdjson.SyntaxError](err); ok {
		offset = e.Offset
	} else if e, ok := errors.AsType[*json5.SyntaxError](err); ok {
		offset = e.Offset
	} else {
		return ""
	}
	read := b[:min(max(offset, 0), int64(len(b)))] // up to and with the byte that is wrong
	return fmt.Sprintf("line %d, column %d: ", 1+bytes.Count(read, []byte("\n")), max(len(read)-1-bytes.LastIndexByte(read, '\n'), 1))
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
	return load(rawbytes.Provider(data), guarded{parser})
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
