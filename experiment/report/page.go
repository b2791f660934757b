package report

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
)

var (
	//go:embed page.html
	pageHTML string
	//go:embed page.css
	pageCSS string
	//go:embed page.js
	pageJS string
)

// page collects what the template shows.
type page struct {
	Report  Report
	Views   []view
	Omitted []string
	Style   template.CSS
	Script  template.JS
	Policy  string
	ids     int
	texts   int
	cut     int
}

// view is a section as the template shows it; Kind says which of the fields below are set.
type view struct {
	ID, Kind       string
	Title, Caption string
	Chart          *chartView
	Table          *tableView
	Verdicts       []verdictView
	Paragraphs     []string
	Window         *windowView
	Compare        *compareView
}

type verdictView struct{ Text, Detail, Tone, Sign, Word string }

func newPage(r Report) *page {
	p := &page{Report: r, Style: template.CSS(pageCSS), Script: template.JS(pageJS)} //nolint:gosec // own files
	p.Report.Title, p.Report.Subtitle = clipLine(r.Title, maxCell), clipLine(r.Subtitle, maxCell)
	p.Report.Facts = nil
	for _, f := range r.Facts {
		p.Report.Facts = append(p.Report.Facts, Fact{Name: clipLine(f.Name, maxCell), Value: clipLine(f.Value, maxCell)})
	}
	p.Policy = "default-src 'none'; style-src '" + hashOf(pageCSS) + "'; script-src '" + hashOf(pageJS) + "'; base-uri 'none'; form-action 'none'"
	return p
}

func hashOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// id returns an id that is unique in the page.
func (p *page) id(kind string) string {
	p.ids++
	return fmt.Sprintf("%s-%d", kind, p.ids)
}

// omit notes what is left out.
func (p *page) omit(format string, args ...any) {
	p.Omitted = append(p.Omitted, visible(fmt.Sprintf(format, args...)))
}

// text admits a text as long as there is room for it.
func (p *page) text(s string) string {
	if p.texts+len(s) > maxTexts {
		p.cut++
		return ""
	}
	p.texts += len(s)
	return s
}

func (p *page) add(v view) {
	v.ID = p.id("section")
	v.Title, v.Caption = clipLine(v.Title, maxCell), clipLine(v.Caption, 4*maxCell)
	p.Views = append(p.Views, v)
}

func (p *page) render(w io.Writer) error {
	if p.cut > 0 {
		p.omit("%d texts, to keep the file small. The figures beside them are complete.", p.cut)
	}
	t, err := template.New("page").Funcs(template.FuncMap{"soft": soft}).Parse(pageHTML)
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := t.Execute(&b, p); err != nil {
		return err
	}
	// Names and labels come from outside as well as excerpts: nothing invisible leaves here.
	_, err = io.WriteString(w, visible(b.String()))
	return err
}

func (v Verdicts) prepare(p *page) (view, error) {
	out := view{Kind: "verdicts", Title: v.Title, Caption: v.Caption}
	for _, it := range v.Items {
		vv := verdictView{Text: p.text(clipLine(it.Text, 2*maxCell)), Detail: p.text(clipLine(it.Detail, 2*maxCell))}
		switch it.Tone {
		case Better:
			vv.Tone, vv.Sign, vv.Word = "better", "▲", "Better"
		case Worse:
			vv.Tone, vv.Sign, vv.Word = "worse", "▼", "Worse"
		case Undecided:
			vv.Tone, vv.Sign, vv.Word = "undecided", "=", "No difference shown"
		case Warning:
			vv.Tone, vv.Sign, vv.Word = "warning", "!", "Note"
		default:
			vv.Tone, vv.Sign, vv.Word = "neutral", "•", "Finding"
		}
		out.Verdicts = append(out.Verdicts, vv)
	}
	return out, nil
}

func (n Note) prepare(p *page) (view, error) {
	out := view{Kind: "note", Title: n.Title}
	for _, s := range n.Paragraphs {
		out.Paragraphs = append(out.Paragraphs, p.text(clipLine(s, 20*maxCell)))
	}
	return out, nil
}
