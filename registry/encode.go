package registry

import (
	"net/url"
	"reflect"
	"strings"
	"time"
)

// hidden stands for a secret.
const hidden = "***"

// encode returns a configuration struct as a file would hold it. Keys with nothing to say (nil pointers, nil maps, empty
// choices) are left out.
func encode(v reflect.Value) map[string]any {
	out := make(map[string]any)
	for _, f := range fieldsOf(v.Type()) {
		if e := encodeValue(v.FieldByIndex(f.index)); e != nil {
			out[f.key] = e
		}
	}
	return out
}

func (c Config) tree() map[string]any { return encode(reflect.ValueOf(c)) }

func encodeAny(v any) any {
	if v == nil {
		return nil
	}
	return encodeValue(reflect.ValueOf(v))
}

func encodeValue(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case Choice:
		if t := x.tree(); len(t) > 0 {
			return t
		}
		return nil
	case time.Duration:
		return x.String()
	case time.Time:
		return x.Format(time.RFC3339Nano)
	}
	switch v.Kind() {
	case reflect.Struct:
		return encode(v)
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return encodeValue(v.Elem())
	case reflect.Map:
		if v.IsNil() {
			return nil
		}
		out := make(map[string]any, v.Len())
		for it := v.MapRange(); it.Next(); {
			out[it.Key().String()] = encodeValue(it.Value())
		}
		return out
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		out := make([]any, v.Len())
		for i := range out {
			out[i] = encodeValue(v.Index(i))
		}
		return out
	case reflect.String:
		return v.String()
	case reflect.Bool:
		return v.Bool()
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return v.Uint()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return v.Int()
	default:
		return nil
	}
}

// secretEndings are what the names of keys that hold secrets end in, in lower case.
var secretEndings = [...]string{"key", "secret", "password", "passwd", "passphrase", "token", "dsn", "credential", "credentials", "authorization", "bearer", "cookie"}

// isSecret reports whether a key holds a secret, by its name.
func isSecret(key string) bool {
	key = strings.ToLower(key)
	for _, e := range secretEndings {
		if strings.HasSuffix(key, e) {
			return true
		}
	}
	return false
}

func redactMap(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = redact(k, v)
	}
	return out
}

// redact returns v without secrets: what stands under a key that is named like one, and passwords in addresses.
func redact(key string, v any) any {
	if isSecret(key) && v != nil && v != "" {
		return hidden
	}
	switch v := v.(type) {
	case map[string]any:
		return redactMap(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = redact(key, e)
		}
		return out
	case string:
		return redactAddress(v)
	}
	return v
}

// redactAddress hides user, password and the values of a query in an address.
func redactAddress(s string) string {
	head, rest, ok := strings.Cut(s, "://")
	if !ok || head == "" || !strings.ContainsAny(rest, "@?") {
		return s
	}
	u, err := url.Parse(s)
	if err != nil {
		return head + "://" + hidden
	}
	if u.User != nil {
		u.User = url.User("redacted")
	}
	if u.RawQuery != "" {
		u.RawQuery = "redacted"
	}
	return u.String()
}
