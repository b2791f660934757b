package published_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/experiment/dataset/published"
)

// What a publisher of the tests has: an array that half is kept of, a file that is taken as it is, and a licence.
const (
	all     = "[\n  {\"id\": \"a\", \"text\": \"caf\u00e9 \\\"x\\\", [1 : 2]\", \"n\": 1.50},\n  {\"id\":\"b\"},\n  {\"id\": \"c\", \"emoji\": \"\U0001f600\"}\n]\n"
	half    = `[{"id": "a", "text": "caf\u00e9 \"x\", [1 : 2]", "n": 1.50}, {"id": "c", "emoji": "\ud83d\ude00"}]`
	plain   = "{\"role\":\"user\"}\n"
	licence = "Do as you like.\n"
)

func sum(data string) published.Sum {
	s := sha256.Sum256([]byte(data))
	return published.Sum{Bytes: int64(len(data)), SHA256: hex.EncodeToString(s[:])}
}

// set is the set of the tests, published below the given addresses.
func set(bases ...string) published.Set {
	arrives := sum(all)
	return published.Set{
		Name: "talk", What: "half of a talk", Publisher: "https://example.com/talk", Bases: bases,
		Licence: published.Licence{
			Name: "CC BY-NC 4.0", Address: "https://example.com/licence", NonCommercial: true,
			Text: &published.File{Path: "talk/LICENSE", Source: "LICENSE", Sum: sum(licence)},
		},
		Files: []published.File{
			{Path: "talk/half.json", Source: "data/all.json", Sum: sum(half), Published: &arrives, Keep: &published.Keep{Field: "id", Values: []string{"c", "a"}}},
			{Path: "talk/plain.jsonl", Source: "data/plain.jsonl", Sum: sum(plain)},
		},
	}
}

// upstream is what the publisher's folder holds.
func upstream() map[string]string {
	return map[string]string{"data/all.json": all, "data/plain.jsonl": plain, "LICENSE": licence}
}

// serve answers with files, and counts the requests for each.
func serve(t *testing.T, files map[string]string) (string, map[string]int) {
	t.Helper()
	asked := make(map[string]int)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, "/rev/")
		asked[name]++
		if text, ok := files[name]; ok {
			_, _ = w.Write([]byte(text))
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL + "/rev/", asked
}

// folder writes files into a new folder.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		put(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// holds compares the files of a folder, but for the note.
func holds(t *testing.T, dir string, want map[string]string) {
	t.Helper()
	got := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "SOURCE.txt" {
			return err
		}
		data, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		got[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func whole() map[string]string {
	return map[string]string{"talk/half.json": half, "talk/plain.jsonl": plain, "talk/LICENSE": licence}
}

func TestFetchFromThePublisher(t *testing.T) {
	base, asked := serve(t, upstream())
	gone, _ := serve(t, nil)
	dir := filepath.Join(t.TempDir(), "new", "data")
	last, sum := int64(0), int64(0)
	done, err := published.Fetch(t.Context(), dir, set(gone, base), published.Options{Progress: func(n, total int64) { last, sum = n, total }})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range done {
		if !o.Written {
			t.Errorf("%s was not written", o.Path)
		}
	}
	holds(t, dir, whole())
	if want := int64(len(all) + len(plain) + len(licence)); len(done) != 3 || last != want || sum != want {
		t.Errorf("%d files, progress ends at %d of %d, want 3 and %d", len(done), last, sum, want)
	}
	note, err := os.ReadFile(filepath.Join(dir, "talk", "SOURCE.txt"))
	for _, want := range []string{"https://example.com/licence", "NOT FOR COMMERCIAL USE", "https://example.com/talk", base, "data/all.json"} {
		if err != nil || !strings.Contains(string(note), want) {
			t.Errorf("the note does not say %q: %v\n%s", want, err, note)
		}
	}

	// What is there is not asked for again; what is missing is.
	if err := os.Remove(filepath.Join(dir, "talk", "plain.jsonl")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := published.Fetch(t.Context(), dir, set(base), published.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	holds(t, dir, whole())
	if diff := cmp.Diff(map[string]int{"LICENSE": 1, "data/all.json": 1, "data/plain.jsonl": 2}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestFetchFromAMirror(t *testing.T) {
	withoutLicence := map[string]string{"talk/half.json": half, "talk/plain.jsonl": plain}
	address, _ := serve(t, withoutLicence)
	for name, c := range map[string]struct {
		from string
		want map[string]string
	}{
		"a data folder":           {folder(t, withoutLicence), withoutLicence},
		"a publisher's folder":    {folder(t, upstream()), whole()},
		"an address":              {address, withoutLicence},
		"an address with a query": {strings.TrimSuffix(address, "/") + "?token=1", withoutLicence},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if _, err := published.Fetch(t.Context(), dir, set("http://127.0.0.1:1/"), published.Options{From: c.from}); err != nil {
				t.Fatal(err)
			}
			holds(t, dir, c.want)
		})
	}
	t.Run("a file", func(t *testing.T) {
		one := set("http://127.0.0.1:1/")
		one.Files = one.Files[:1]
		for _, text := range []string{all, half} {
			dir := t.TempDir()
			if _, err := published.Fetch(t.Context(), dir, one, published.Options{From: filepath.Join(folder(t, map[string]string{"f": text}), "f")}); err != nil {
				t.Fatal(err)
			}
			holds(t, dir, map[string]string{"talk/half.json": half})
		}
	})
	t.Run("a file for a set of several", func(t *testing.T) {
		from := filepath.Join(folder(t, map[string]string{"f": all}), "f")
		if _, err := published.Fetch(t.Context(), t.TempDir(), set("http://127.0.0.1:1/"), published.Options{From: from}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("Fetch = %v, want %v", err, core.ErrInvalid)
		}
	})
	t.Run("a mirror that lacks a file", func(t *testing.T) {
		dir := t.TempDir()
		_, err := published.Fetch(t.Context(), dir, set("http://127.0.0.1:1/"), published.Options{From: folder(t, map[string]string{"talk/half.json": half})})
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "talk/plain.jsonl") {
			t.Errorf("Fetch = %v, want %v that names the file", err, fs.ErrNotExist)
		}
		holds(t, dir, map[string]string{"talk/half.json": half})
	})
}

// What is not what was published never appears, and the error says what was expected and what is there.
func TestFetchOfSomethingElse(t *testing.T) {
	for name, other := range map[string]string{"changed": strings.Replace(all, "1.50", "1.51", 1), "cut": all[:20], "longer": all + strings.Repeat(" ", 1000), "empty": ""} {
		t.Run(name, func(t *testing.T) {
			files := upstream()
			files["data/all.json"] = other
			base, _ := serve(t, files)
			dir := t.TempDir()
			_, err := published.Fetch(t.Context(), dir, set(base), published.Options{})
			holds(t, dir, map[string]string{"talk/LICENSE": licence})
			if err == nil || !strings.Contains(err.Error(), "talk/half.json") || !strings.Contains(err.Error(), base) {
				t.Fatalf("Fetch = %v, want an error that names the file and the address", err)
			}
			mismatch, ok := errors.AsType[*published.MismatchError](err)
			if name == "longer" {
				if ok || !strings.Contains(err.Error(), "more than") {
					t.Errorf("Fetch = %v, want that there is too much", err)
				}
				return
			}
			if !ok || mismatch.Want != sum(all) || mismatch.Seen != sum(other) {
				t.Errorf("Fetch = %v, want a mismatch of %v and %v", err, sum(all), sum(other))
			}
		})
	}
	t.Run("selection", func(t *testing.T) {
		base, _ := serve(t, upstream())
		s, dir := set(base), t.TempDir()
		s.Files[0].Keep = &published.Keep{First: 1}
		if _, err := published.Fetch(t.Context(), dir, s, published.Options{}); err == nil || !strings.Contains(err.Error(), "selected from "+base) {
			t.Errorf("Fetch = %v, want that the selection is another", err)
		}
	})
}

func TestFetchReplacesNothingUnasked(t *testing.T) {
	base, _ := serve(t, upstream())
	dir := t.TempDir()
	mine := filepath.Join(dir, "talk", "half.json")
	put(t, mine, "mine")
	_, err := published.Fetch(t.Context(), dir, set(base), published.Options{})
	if mismatch, ok := errors.AsType[*published.MismatchError](err); !ok || mismatch.Where != mine || !strings.Contains(err.Error(), "--force") {
		t.Errorf("Fetch = %v, want a mismatch of %s that names --force", err, mine)
	}
	if data, _ := os.ReadFile(mine); string(data) != "mine" {
		t.Errorf("the file was replaced by %q", data)
	}
	if _, err := published.Fetch(t.Context(), dir, set(base), published.Options{Force: true}); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, whole())
}

func TestFetchFails(t *testing.T) {
	t.Run("server", func(t *testing.T) {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusServiceUnavailable) }))
		t.Cleanup(s.Close)
		dir := t.TempDir()
		_, err := published.Fetch(t.Context(), dir, set(s.URL), published.Options{From: strings.Replace(s.URL, "//", "//me:hidden@", 1) + "?key=secret"})
		if err == nil || !strings.Contains(err.Error(), "503") || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "hidden") {
			t.Errorf("Fetch = %v, want the status and nothing secret", err)
		}
		s.Close()
		_, err = published.Fetch(t.Context(), dir, set(s.URL), published.Options{From: s.URL + "?key=secret"})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Fetch from a server that is gone = %v, want an error without the key", err)
		}
		holds(t, dir, map[string]string{})
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "LICENSE") {
				_, _ = w.Write([]byte(licence))
				return
			}
			_, _ = w.Write([]byte(all[:10]))
			_ = http.NewResponseController(w).Flush()
			cancel() // in the middle of a file
			<-r.Context().Done()
		}))
		t.Cleanup(s.Close)
		dir := t.TempDir()
		if _, err := published.Fetch(ctx, dir, set(s.URL), published.Options{}); !errors.Is(err, context.Canceled) {
			t.Errorf("Fetch = %v, want %v", err, context.Canceled)
		}
		holds(t, dir, map[string]string{"talk/LICENSE": licence})
	})
}

func TestVerify(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  published.State
	}{
		"all":            {whole(), published.Present},
		"without text":   {map[string]string{"talk/half.json": half, "talk/plain.jsonl": plain}, published.Present},
		"nothing":        {nil, published.Absent},
		"text alone":     {map[string]string{"talk/LICENSE": licence}, published.Absent},
		"some":           {map[string]string{"talk/plain.jsonl": plain}, published.Partial},
		"another":        {map[string]string{"talk/half.json": half, "talk/plain.jsonl": plain + "\n"}, published.Different},
		"another's text": {map[string]string{"talk/half.json": half, "talk/plain.jsonl": plain, "talk/LICENSE": "no"}, published.Different},
	} {
		t.Run(name, func(t *testing.T) {
			list, err := published.Verify(folder(t, c.files), set("https://example.com/"))
			if got := published.StateOf(list, set("https://example.com/")); err != nil || got != c.want || len(list) != 3 {
				t.Errorf("%d files are %q, %v, want 3 that are %q", len(list), got, err, c.want)
			}
		})
	}
}

func TestParse(t *testing.T) {
	good := set("https://example.com/rev/")
	for name, c := range map[string]struct {
		change func(*published.Set)
		says   string
	}{
		"good":             {func(*published.Set) {}, ""},
		"name":             {func(s *published.Set) { s.Name = "../talk" }, "name:"},
		"base":             {func(s *published.Set) { s.Bases = []string{"example"} }, "bases:"},
		"no base":          {func(s *published.Set) { s.Bases = nil }, "bases:"},
		"licence":          {func(s *published.Set) { s.Licence.Name = "" }, "licence.name:"},
		"licence address":  {func(s *published.Set) { s.Licence.Address = "MIT" }, "licence.address:"},
		"outside":          {func(s *published.Set) { s.Files[0].Path = "talk/../../etc/half.json" }, "path:"},
		"another's folder": {func(s *published.Set) { s.Files[0].Path = "walk/half.json" }, "path:"},
		"twice":            {func(s *published.Set) { s.Files[0].Path = s.Files[1].Path }, "taken"},
		"the note":         {func(s *published.Set) { s.Files[0].Path = "talk/SOURCE.txt" }, "taken"},
		"source":           {func(s *published.Set) { s.Files[0].Source = "/etc/passwd" }, "source:"},
		"checksum":         {func(s *published.Set) { s.Files[0].SHA256 = "unknown" }, "sha256:"},
		"what arrives":     {func(s *published.Set) { s.Files[0].Published.SHA256 = "" }, "published:"},
		"keep alone":       {func(s *published.Set) { s.Files[0].Published = nil }, "keep:"},
		"keep both":        {func(s *published.Set) { s.Files[0].Keep.First = 3 }, "keep:"},
		"keep nothing":     {func(s *published.Set) { s.Files[0].Keep = &published.Keep{Field: "id"} }, "keep:"},
	} {
		t.Run(name, func(t *testing.T) {
			s := set("https://example.com/rev/")
			c.change(&s)
			got, err := published.Parse(encode(t, s))
			if c.says != "" {
				if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("Parse = %v, want %v that says %q", err, core.ErrInvalid, c.says)
				}
				return
			}
			if diff := cmp.Diff([]published.Set{good}, got); err != nil || diff != "" {
				t.Errorf("Parse: %v (-want +got):\n%s", err, diff)
			}
		})
	}
	if _, err := published.Parse(encode(t, good, good)); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a set that is there twice: %v, want %v", err, core.ErrInvalid)
	}
	if _, err := published.Parse([]byte(`{"sets": [], "more": 1}`)); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("a field that is not known: %v, want %v", err, core.ErrInvalid)
	}
}

func encode(t *testing.T, sets ...published.Set) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(map[string]any{"sets": sets}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
