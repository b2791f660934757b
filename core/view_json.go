package core

import (
	"encoding/json"

	"github.com/contextengine/contextengine/core/internal/exact"
)

// viewFields is a view that is written field by field.
type viewFields View

// viewInJSON is a view as JSON. Exact is there only where a text is no UTF-8, which JSON cannot hold; the view is then all in there.
type viewInJSON struct {
	*viewFields
	Exact []byte `json:"exact,omitempty"`
}

// MarshalJSON implements json.Marshaler: UnmarshalJSON gives every text back byte for byte.
func (v View) MarshalJSON() ([]byte, error) {
	out := viewInJSON{viewFields: (*viewFields)(&v)}
	text, mended, err := exact.JSON(out)
	if err != nil || !mended {
		return text, err
	}
	if out.Exact, err = exact.Pack(out.viewFields); err != nil {
		return nil, err
	}
	text, _, err = exact.JSON(out)
	return text, err
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *View) UnmarshalJSON(text []byte) error {
	in := viewInJSON{viewFields: (*viewFields)(v)}
	if err := json.Unmarshal(text, &in); err != nil || len(in.Exact) == 0 {
		return err
	}
	*v = View{}
	return exact.Unpack(in.Exact, v)
}
