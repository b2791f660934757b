package registry

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

var (
	durationType  = reflect.TypeFor[time.Duration]()
	choiceType    = reflect.TypeFor[Choice]()
	searchersType = reflect.TypeFor[Searchers]()
	overrideType  = reflect.TypeFor[Override]()
	armType       = reflect.TypeFor[Arm]()
	anyType       = reflect.TypeFor[any]()
)

// field is a field of a configuration struct that a file can set.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	doc   string
	kind  Kind // of a Choice
	// isFile says that it is the path of a file.
	isFile bool
}

// fieldsOf lists what a file can set of a struct, in the order of its fields. Fields tagged "-" and unexported ones are left out; those
// tagged ",squash" and untagged embedded ones lend their fields.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("koanf"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		if f.Type.Kind() == reflect.Struct && (opts == "squash" || f.Anonymous && name == "") {
			for _, in := range fieldsOf(f.Type) {
				in.index = append([]int{i}, in.index...)
				out = append(out, in)
			}
			continue
		}
		if name == "" {
			r, n := utf8.DecodeRuneInString(f.Name)
			name = string(unicode.ToLower(r)) + f.Name[n:]
		}
		_, isFile := f.Tag.Lookup("file")
		out = append(out, field{
			key: name, index: []int{i}, typ: f.Type, doc: f.Tag.Get("doc"), kind: Kind(f.Tag.Get("kind")), isFile: isFile,
		})
	}
	return out
}

// keysOf returns the keys of a struct, sorted.
func keysOf(fields []field) []string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	slices.Sort(keys)
	return keys
}

// checkConfigType returns an error when a file cannot hold a value of t.
func checkConfigType(t reflect.Type) error {
	if t.Kind() != reflect.Struct {
		return fmt.Errorf("configuration %s is not a struct", t)
	}
	for _, f := range fieldsOf(t) {
		if f.key == "type" {
			return errors.New(`configuration key "type" is taken: it names the part`)
		}
	}
	return checkType(t, nil)
}

func checkType(t reflect.Type, above []reflect.Type) error {
	if slices.Contains(above, t) {
		return fmt.Errorf("type %s contains itself", t)
	}
	above = append(slices.Clip(above), t)
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	case reflect.Pointer, reflect.Slice:
		return checkType(t.Elem(), above)
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return fmt.Errorf("type %s has keys that are not strings", t)
		}
		return checkType(t.Elem(), above)
	case reflect.Struct:
		seen := map[string]bool{}
		for _, f := range fieldsOf(t) {
			if seen[f.key] {
				return fmt.Errorf("key %q is there twice", f.key)
			}
			seen[f.key] = true
			if err := checkType(f.typ, above); err != nil {
				return fmt.Errorf("key %q: %w", f.key, err)
			}
		}
		return nil
	case reflect.Interface:
		if t == anyType {
			return nil
		}
	}
	return fmt.Errorf(`type %s cannot be read from a file; tag the field koanf:"-" when it is not for operators`, t)
}

// typeName names a type in words for operators.
func typeName(t reflect.Type) string {
	switch t {
	case durationType:
		return "duration"
	case choiceType:
		return "part"
	case searchersType:
		return "searchers by name"
	case overrideType:
		return "object"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "boolean"
	case reflect.String:
		return "string"
	case reflect.Float32, reflect.Float64:
		return "number"
	case reflect.Pointer:
		return typeName(t.Elem())
	case reflect.Slice:
		return "list of " + typeName(t.Elem())
	case reflect.Map:
		return typeName(t.Elem()) + " by name"
	case reflect.Struct:
		return "object"
	case reflect.Interface:
		return "anything"
	default:
		return "integer"
	}
}
