package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
)

// wrap copies the library's drawing element by element, so that nothing but shapes and texts with known attributes reaches the page, and
// adds what the library cannot: a title and a description, and a tip for every mark.
func wrap(drawn []byte, p *plot, title, desc, id, class string) (template.HTML, error) {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot %s" viewBox="0 0 %d %d" role="img" aria-labelledby="%s-t %s-d"><title id="%s-t">%s</title><desc id="%s-d">%s</desc>`,
		class, p.width, p.height, id, id, id, template.HTMLEscapeString(title), id, template.HTMLEscapeString(desc))
	dec := xml.NewDecoder(bytes.NewReader(drawn))
	var open []string
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read drawing: %w", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			name := t.Name.Local
			switch name {
			case "path", "circle", "text":
			case "svg":
				continue
			default:
				return "", fmt.Errorf("drawing holds an element %q", name)
			}
			tip := writeElement(&b, t, p.titles)
			if tip != "" {
				b.WriteString("<title>" + template.HTMLEscapeString(tip) + "</title>")
			}
			open = append(open, name)
		case xml.EndElement:
			if len(open) > 0 {
				b.WriteString("</" + open[len(open)-1] + ">")
				open = open[:len(open)-1]
			}
		case xml.CharData:
			if len(open) > 0 {
				b.WriteString(template.HTMLEscapeString(string(t)))
			}
		}
	}
	b.WriteString("</svg>")
	return template.HTML(b.String()), nil //nolint:gosec // built above from escaped parts
}

// writeElement writes the start of an element with the attributes that are geometry, and returns the tip its class names. What the library
// draws without a class is a grid line.
func writeElement(b *strings.Builder, t xml.StartElement, tips []string) string {
	b.WriteString("<" + t.Name.Local)
	var classes []string
	tip := ""
	for _, a := range t.Attr {
		switch a.Name.Local {
		case "d":
			fmt.Fprintf(b, ` d="%s"`, template.HTMLEscapeString(strings.ReplaceAll(a.Value, "\n", "")))
		case "x", "y", "cx", "cy", "r", "stroke-dasharray":
			fmt.Fprintf(b, ` %s="%s"`, a.Name.Local, template.HTMLEscapeString(a.Value))
		case "class":
			for c := range strings.FieldsSeq(a.Value) {
				if n, ok := strings.CutPrefix(c, "tip"); ok {
					if i, err := strconv.Atoi(n); err == nil && i < len(tips) {
						tip = tips[i]
						continue
					}
				}
				switch c {
				case "stroke", "fill", "text": // the library's own
				default:
					classes = append(classes, c)
				}
			}
		}
	}
	if len(classes) == 0 {
		classes = []string{classGrid}
	}
	fmt.Fprintf(b, ` class="%s">`, template.HTMLEscapeString(strings.Join(classes, " ")))
	return tip
}
