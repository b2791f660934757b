package registry

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/contextengine/contextengine/core"
)

func duration(v any, dst reflect.Value, at path) error {
	var s string
	switch v := v.(type) {
	case string:
		s = v
	case envText:
		s = string(v)
	default:
		return mismatch(at, dst.Type(), v)
	}
	n, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf(`%s: want a duration such as "2s" or "1h30m", found another string: %w`, at, core.ErrInvalid)
	}
	dst.SetInt(int64(n))
	return nil
}

// scalar reads booleans, strings and numbers. Nothing is converted except from the environment.
func scalar(v any, dst reflect.Value, at path) error {
	t := dst.Type()
	if s, ok := v.(envText); ok {
		if v = fromEnv(string(s), t); v == nil {
			return fmt.Errorf("%s: want %s, found text that is none: %w", at, article(typeName(t)), core.ErrInvalid)
		}
	}
	switch t.Kind() {
	case reflect.Bool:
		if b, ok := v.(bool); ok {
			dst.SetBool(b)
			return nil
		}
	case reflect.String:
		if s, ok := v.(string); ok {
			dst.SetString(s)
			return nil
		}
	case reflect.Float32, reflect.Float64:
		if f, ok := number(v); ok {
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return fmt.Errorf("%s: want a finite number: %w", at, core.ErrInvalid)
			}
			dst.SetFloat(f)
			return nil
		}
	default:
		if f, ok := number(v); ok {
			return integer(v, f, dst, at)
		}
	}
	return mismatch(at, t, v)
}

// fromEnv reads text as a scalar of type t; nil when it is none.
func fromEnv(s string, t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return s
	case reflect.Bool:
		if b, err := strconv.ParseBool(s); err == nil {
			return b
		}
	case reflect.Float32, reflect.Float64:
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return f
		}
	default:
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n
		}
	}
	return nil
}

func number(v any) (float64, bool) {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return float64(r.Int()), r.Type() != durationType
	case r.CanUint():
		return float64(r.Uint()), true
	case r.CanFloat():
		return r.Float(), true
	}
	return 0, false
}

// integer stores a whole number; f is v as a float, which formats without integers give.
func integer(v any, f float64, dst reflect.Value, at path) error {
	if f != math.Trunc(f) {
		return fmt.Errorf("%s: want an integer, found a number with a fraction: %w", at, core.ErrInvalid)
	}
	var n int64
	switch r := reflect.ValueOf(v); {
	case r.CanInt():
		n = r.Int()
	case math.Abs(f) < 1<<63: // false for the infinities and for what is not a number
		n = int64(f)
	default:
		return fmt.Errorf("%s: number out of range: %w", at, core.ErrInvalid)
	}
	switch {
	case dst.CanInt() && !dst.OverflowInt(n):
		dst.SetInt(n)
	case dst.CanUint() && n >= 0 && !dst.OverflowUint(uint64(n)):
		dst.SetUint(uint64(n))
	default:
		return fmt.Errorf("%s: number out of range: %w", at, core.ErrInvalid)
	}
	return nil
}

// mismatch says which type was wanted and found; never the value, which may be a secret.
func mismatch(at path, want reflect.Type, found any) error {
	name := article(typeName(want))
	if want == durationType {
		name = `a duration such as "2s"`
	}
	return fmt.Errorf("%s: want %s, found %s: %w", at, name, foundName(found), core.ErrInvalid)
}

func foundName(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case string, envText:
		return "a string"
	case bool:
		return "a boolean"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case time.Time:
		return "a date"
	default:
		if _, ok := number(v); ok {
			return "a number"
		}
		return "something else"
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}
