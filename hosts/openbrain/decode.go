package openbrain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"unicode/utf8"
)

// body is a JSON object that was sent. Names of fields are compared exactly; unknown ones are ignored, as FastAPI does.
type body map[string]json.RawMessage

// readBody reads a request's body.
func readBody(r *http.Request) (body, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return nil, refuse(http.StatusUnsupportedMediaType, "Content-Type must be application/json")
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("openbrain: read body: %w", err)
	}
	return parseBody(data)
}

// parseBody reads a JSON object.
func parseBody(data []byte) (body, error) {
	if !utf8.Valid(data) {
		return nil, unprocessable(bodyProblem("json_invalid", "", "JSON decode error: not UTF-8"))
	}
	if !json.Valid(data) {
		return nil, unprocessable(bodyProblem("json_invalid", "", "JSON decode error"))
	}
	var b body
	if !isObject(data) || json.Unmarshal(data, &b) != nil {
		return nil, unprocessable(bodyProblem("model_attributes_type", "", "Input should be a valid dictionary"))
	}
	return b, nil
}

func isObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

// has reports whether a field is there and not null.
func (b body) has(name string) bool {
	raw, ok := b[name]
	return ok && !bytes.Equal(bytes.TrimSpace(raw), []byte("null"))
}

// text returns a string field, exactly as it was meant; a string that is no Unicode text is refused rather than changed.
func (b body) text(name string) (string, error) {
	raw := bytes.TrimSpace(b[name])
	var s string
	if len(raw) == 0 || raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", unprocessable(bodyProblem("string_type", name, "Input should be a valid string"))
	}
	if loneSurrogate(raw) {
		return "", unprocessable(bodyProblem("string_unicode", name, "Input should be a valid string, unable to parse raw data as a unicode string"))
	}
	return s, nil
}

// object returns an object field without insignificant space.
func (b body) object(name string) (json.RawMessage, error) {
	if !isObject(b[name]) {
		return nil, unprocessable(bodyProblem("dict_type", name, "Input should be a valid dictionary"))
	}
	var out bytes.Buffer
	if err := json.Compact(&out, b[name]); err != nil {
		return nil, unprocessable(bodyProblem("json_invalid", name, "JSON decode error"))
	}
	return out.Bytes(), nil
}

// limit returns a limit between 1 and most.
func (b body) limit(name string, otherwise, most int) (int, error) {
	if !b.has(name) {
		return min(otherwise, most), nil
	}
	n, err := strconv.Atoi(string(bytes.TrimSpace(b[name])))
	if err != nil {
		return 0, unprocessable(bodyProblem("int_parsing", name, "Input should be a valid integer"))
	}
	kind, msg := outside(n, 1, most)
	if kind != "" {
		return 0, unprocessable(bodyProblem(kind, name, msg))
	}
	return n, nil
}

// number returns a query parameter between least and most.
func number(q url.Values, name string, otherwise, least, most int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return min(otherwise, most), nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, unprocessable(queryProblem("int_parsing", name, "Input should be a valid integer, unable to parse string as an integer"))
	}
	kind, msg := outside(n, least, most)
	if kind != "" {
		return 0, unprocessable(queryProblem(kind, name, msg))
	}
	return n, nil
}

func outside(n, least, most int) (kind, msg string) {
	switch {
	case n < least:
		return "greater_than_equal", fmt.Sprintf("Input should be greater than or equal to %d", least)
	case n > most:
		return "less_than_equal", fmt.Sprintf("Input should be less than or equal to %d", most)
	}
	return "", ""
}

// parseQuery returns the query parameters; broken ones are refused, since one that is dropped could be a filter of a delete.
func parseQuery(r *http.Request) (url.Values, error) {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "Query string is malformed")
	}
	return q, nil
}

// loneSurrogate reports whether a JSON string holds an escape that is half of a pair: encoding/json would put another character in
// its place.
func loneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		i++
		if raw[i] != 'u' {
			continue
		}
		switch r := unit(raw[i-1:]); {
		case r >= 0xdc00 && r < 0xe000:
			return true
		case r >= 0xd800 && r < 0xdc00:
			if low := unit(raw[min(i+5, len(raw)):]); low < 0xdc00 || low >= 0xe000 {
				return true
			}
			i += 6
		}
		i += 4
	}
	return false
}

// unit returns the value of the escape that raw begins with, or -1.
func unit(raw []byte) int64 {
	if len(raw) < 6 || raw[0] != '\\' || raw[1] != 'u' {
		return -1
	}
	v, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int64(v)
}
