// Package identity tells parts apart that others made: == and the keys of maps panic where a part is a Go value that cannot be compared.
package identity

import "reflect"

// Same is == for what others made: where a value cannot be compared, as it holds a function, a map or a slice, those are the same that are in one place.
func Same(a, b any) bool {
	va, vb := reflect.ValueOf(a), reflect.ValueOf(b)
	if !va.IsValid() || !vb.IsValid() {
		return va.IsValid() == vb.IsValid()
	}
	return samePlace(va, vb)
}

func samePlace(a, b reflect.Value) bool {
	if a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Func, reflect.Map:
		return a.Pointer() == b.Pointer()
	case reflect.Slice:
		return a.Len() == b.Len() && a.Pointer() == b.Pointer()
	case reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return samePlace(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !samePlace(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	case reflect.Array:
		for i := range a.Len() {
			if !samePlace(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	}
	return a.Equal(b)
}
