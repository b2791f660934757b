package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"time"
)

// archives packs, for each platform, the program with its licence, pages and completions.
func (r *release) archives(context.Context) error {
	for _, t := range r.targets {
		program, err := os.ReadFile(r.path(t))
		if err != nil {
			return err
		}
		folder := r.file(t, "")
		files := []file{
			{name: t.program(), data: program, exec: true},
			{name: "LICENSE", data: r.texts.licence},
			{name: "THIRD_PARTY_NOTICES.txt", data: r.texts.notices},
			{name: "README.md", data: r.texts.readme},
			{name: "completions/contextengine.bash", data: r.texts.completions["bash"]},
			{name: "completions/_contextengine", data: r.texts.completions["zsh"]},
			{name: "completions/contextengine.fish", data: r.texts.completions["fish"]},
			{name: "completions/contextengine.ps1", data: r.texts.completions["powershell"]},
		}
		for _, p := range r.texts.pages {
			files = append(files, file{name: "man/man1/" + p.name, data: p.data})
		}
		for i := range files {
			files[i].name = folder + "/" + files[i].name
		}
		pack, suffix := tarGz, ".tar.gz"
		if t.os == "windows" {
			pack, suffix = zipped, ".zip"
		}
		data, err := pack(files, r.date)
		if err != nil {
			return err
		}
		if err := r.write(r.file(t, suffix), data); err != nil {
			return err
		}
	}
	return nil
}

// write puts a file of the release in place.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

func (f file) mode() int64 {
	if f.exec {
		return 0o755
	}
	return 0o644
}

// tarGz packs files, in their order, with nothing in it that another machine would do otherwise.
func tarGz(files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if err := tarTo(z, files, when); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func tarTo(w io.Writer, files []file, when time.Time) error {
	t := tar.NewWriter(w)
	for _, f := range files {
		if err := t.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode(), Size: int64(len(f.data)), ModTime: when, Typeflag: tar.TypeReg, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func zipped(files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when}
		h.SetMode(os.FileMode(f.mode()))
		w, err := z.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// gz compresses a file as Debian's policy wants pages: best, without name and time.
func gz(data []byte) ([]byte, error) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
