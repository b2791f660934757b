package conformance

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/contextengine/contextengine/core"
)

// shownBytes is how much of a text a finding shows on either side of where it differs.
const shownBytes = 40

// differs compares two values field by field and byte by byte, without an encoder that could repair what it compares, and describes the first difference
// with the path to it. Empty and nil slices and maps are the same, times are compared by the millisecond, and fields that are not encoded are left out.
func differs(got, want any) string {
	return differ(reflect.ValueOf(got), reflect.ValueOf(want))
}

// differ is put together on the way out: most values are alike, and the path to each of their fields would cost more than comparing them.
func differ(got, want reflect.Value) string {
	if k := want.Kind(); k == reflect.Interface || k == reflect.Func || k == reflect.Chan {
		return ""
	}
	if t, ok := reflect.TypeAssert[time.Time](want); ok {
		g, _ := reflect.TypeAssert[time.Time](got)
		if !g.Truncate(time.Millisecond).Equal(t.Truncate(time.Millisecond)) {
			return fmt.Sprintf(" is %v, want %v", g.UTC(), t.UTC())
		}
		return ""
	}
	switch want.Kind() {
	case reflect.Struct:
		for _, f := range encodedFields(want.Type()) {
			if d := differ(got.Field(f.Index[0]), want.Field(f.Index[0])); d != "" {
				return "." + f.Name + d
			}
		}
	case reflect.Pointer:
		switch {
		case got.IsNil() != want.IsNil():
			return fmt.Sprintf(" is set: %v, want %v", !got.IsNil(), !want.IsNil())
		case !want.IsNil():
			return differ(got.Elem(), want.Elem())
		}
	case reflect.Slice:
		return differSlice(got, want)
	case reflect.Map:
		return differMap(got, want)
	case reflect.String:
		return differText("", got.String(), want.String())
	case reflect.Float32, reflect.Float64: // to the last bit
		if g, w := got.Float(), want.Float(); math.Float64bits(g) != math.Float64bits(w) {
			return fmt.Sprintf(" is %v, want %v", g, w)
		}
	default:
		if g, w := got.Interface(), want.Interface(); g != w {
			return fmt.Sprintf(" is %v, want %v", g, w)
		}
	}
	return ""
}

var encoded sync.Map

// encodedFields lists the fields of a struct that are exported and encoded.
func encodedFields(t reflect.Type) []reflect.StructField {
	if fields, ok := encoded.Load(t); ok {
		return fields.([]reflect.StructField)
	}
	var fields []reflect.StructField
	for f := range t.Fields() {
		if f.IsExported() && f.Tag.Get("json") != "-" {
			fields = append(fields, f)
		}
	}
	encoded.Store(t, fields)
	return fields
}

func differSlice(got, want reflect.Value) string {
	if g, ok := reflect.TypeAssert[[]byte](got); ok {
		if w := want.Bytes(); !bytes.Equal(g, w) {
			return differText("", string(g), string(w))
		}
		return ""
	}
	for i := range min(got.Len(), want.Len()) {
		if d := differ(got.Index(i), want.Index(i)); d != "" {
			return fmt.Sprintf("[%d]%s", i, d)
		}
	}
	if got.Len() != want.Len() {
		return fmt.Sprintf(" has %d elements, want %d", got.Len(), want.Len())
	}
	return ""
}

func differMap(got, want reflect.Value) string {
	for _, k := range want.MapKeys() {
		g := got.MapIndex(k)
		if !g.IsValid() {
			return fmt.Sprintf("[%v] is missing", k)
		}
		if d := differ(g, want.MapIndex(k)); d != "" {
			return fmt.Sprintf("[%v]%s", k, d)
		}
	}
	if got.Len() != want.Len() {
		return fmt.Sprintf(" has %d keys, want %d", got.Len(), want.Len())
	}
	return ""
}

func differText(path, got, want string) string {
	if got == want {
		return ""
	}
	at := 0
	for at < min(len(got), len(want)) && got[at] == want[at] {
		at++
	}
	cut := func(s string) string { return s[max(0, at-shownBytes/2):min(len(s), at+shownBytes)] }
	return fmt.Sprintf("%s has %d bytes, want %d; from byte %d it is %q, want %q", path, len(got), len(want), max(0, at-shownBytes/2), cut(got), cut(want))
}

// filled sets every field of what p points to, and of all it holds, to something that is not its zero value. A field that is added one day is covered that day.
func filled(p any) {
	n := 0
	fillValue(reflect.ValueOf(p).Elem(), &n)
}

func fillValue(v reflect.Value, n *int) {
	*n++
	if _, ok := reflect.TypeAssert[time.Time](v); ok {
		v.Set(reflect.ValueOf(epoch.Add(time.Duration(*n) * time.Millisecond)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range encodedFields(v.Type()) {
			fillValue(v.Field(f.Index[0]), n)
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fillValue(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fillValue(key, n)
			fillValue(value, n)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("%d é \"<&>\\ \u2028\t%s", *n, strings.Repeat("x", *n%3)))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(*n) + 0.1) // no smaller type holds it
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(200 + *n%50))
	case reflect.Uint64, reflect.Uint, reflect.Uint32:
		v.SetUint(uint64(*n))
	}
}

// enlarge makes whole numbers so large, wherever they are held, that no smaller type holds them, and no fraction all of them.
func enlarge(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range encodedFields(v.Type()) {
			enlarge(v.Field(f.Index[0]))
		}
	case reflect.Pointer:
		enlarge(v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			enlarge(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem()
			value.Set(v.MapIndex(k))
			enlarge(value)
			v.SetMapIndex(k, value)
		}
	case reflect.Int:
		v.SetInt(v.Int() + math.MaxInt32/2)
	case reflect.Int64:
		v.SetInt(v.Int() + 1<<53)
	case reflect.Uint64:
		v.SetUint(v.Uint() + 1<<53)
	}
}

// spoilt overwrites everything that a slice, a map or a pointer in v leads to: whoever kept any of it, or gave it away while keeping it, holds the spoilt.
func spoilt(v any) { spoilValue(reflect.ValueOf(v), math.MaxInt) }

// spoiltView overwrites what View.Clone copies, see there.
func spoiltView(v *core.View) {
	const levels = 2 // the view, and what its fields lead to
	spoilValue(reflect.ValueOf(v), levels)
}

// spoilValue follows at most so many slices, maps and pointers one after the other.
func spoilValue(v reflect.Value, levels int) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if levels == 0 {
			return
		}
		levels--
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spoilValue(v.Elem(), levels)
			if v.Elem().CanSet() && v.Elem().Kind() != reflect.Struct {
				overwrite(v.Elem())
			} else if v.Elem().Kind() == reflect.Struct {
				spoilFields(v.Elem())
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				spoilValue(v.Field(i), levels)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			spoilValue(v.Index(i), levels)
			if v.Index(i).Kind() == reflect.Struct {
				spoilFields(v.Index(i))
				continue
			}
			overwrite(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			spoilValue(v.MapIndex(k), levels)
			v.SetMapIndex(k, reflect.Zero(v.Type().Elem()))
		}
	}
}

// spoilFields overwrites the plain fields of a struct that lies in shared memory.
func spoilFields(v reflect.Value) {
	for _, f := range v.Fields() {
		if f.CanSet() {
			overwrite(f)
		}
	}
}

func overwrite(v reflect.Value) {
	switch {
	case !v.CanSet():
	case v.Kind() == reflect.String:
		v.SetString("spoilt")
	case v.Kind() == reflect.Uint8:
		v.SetUint(v.Uint() + 0x55) // not its own inverse: what is spoilt twice stays spoilt
	case v.CanInt():
		v.SetInt(v.Int() + 77)
	case v.CanFloat():
		v.SetFloat(v.Float() + 77)
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	}
}
