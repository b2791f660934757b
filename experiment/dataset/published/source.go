package published

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/core"
)

// source is where the files of a set are taken from.
type source struct {
	client   *http.Client
	progress func(done, total int64)
	done     int64
	total    int64
	// bases are addresses; mirror tells that files below them may be named as in the data folder.
	bases  []string
	mirror bool
	// dir and file are a mirror on this machine.
	dir, file string
}

func newSource(set Set, o Options) (*source, error) {
	s := &source{client: o.Client, progress: o.Progress, bases: set.Bases}
	if s.client == nil {
		s.client = &http.Client{Timeout: patience}
	}
	for _, f := range set.Files {
		s.total += f.arrives().Bytes
	}
	if set.Licence.Text != nil {
		s.total += set.Licence.Text.Bytes
	}
	if o.From == "" {
		return s, nil
	}
	s.bases, s.mirror = nil, true
	if strings.HasPrefix(o.From, "http://") || strings.HasPrefix(o.From, "https://") {
		s.bases = []string{o.From}
		return s, nil
	}
	info, err := os.Stat(o.From)
	switch {
	case err != nil && strings.Contains(o.From, "://"):
		return nil, fmt.Errorf("published: fetch %q from %s: a mirror is a folder, a file, or an http or https address: %w", set.Name, shown(o.From), core.ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("published: fetch %q: %w", set.Name, err)
	case info.IsDir():
		s.dir = o.From
	case len(set.Files) > 1:
		return nil, fmt.Errorf("published: fetch %q from %s: the set has %d files: name a folder: %w", set.Name, o.From, len(set.Files), core.ErrInvalid)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("published: fetch %q from %s: neither a folder nor a regular file: %w", set.Name, o.From, core.ErrInvalid)
	default:
		s.file = o.From
	}
	return s, nil
}

// skip counts a file that need not be transferred.
func (s *source) skip(f File) { s.moved(f.arrives().Bytes) }

func (s *source) moved(n int64) {
	s.done += n
	if s.progress != nil {
		s.progress(min(s.done, s.total), s.total)
	}
}

// get returns a file of the set, checked. The places are asked in turn; the errors are those of the places that had something, or of all.
func (s *source) get(ctx context.Context, f File) ([]byte, error) {
	var had, absent []error
	before := s.done
	for _, where := range s.places(f) {
		data, err := s.read(ctx, where, max(f.Bytes, f.arrives().Bytes))
		if err == nil {
			data, err = made(f, shown(where), data)
		}
		s.done = before
		switch {
		case err == nil:
			s.skip(f) // a mirror may have sent less than the publisher would
			return data, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			absent = append(absent, err)
		default:
			had = append(had, err)
		}
	}
	if len(had) == 0 {
		had = absent
	}
	return nil, errors.Join(had...)
}

// read returns what a place holds, if that is no more than limit bytes.
func (s *source) read(ctx context.Context, where string, limit int64) ([]byte, error) {
	open := s.ask
	if len(s.bases) == 0 {
		open = regular
	}
	r, err := open(ctx, where)
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var data bytes.Buffer
	if _, err := io.Copy(io.MultiWriter(&data, counter(s.moved)), io.LimitReader(r, limit+1)); err != nil {
		return nil, fmt.Errorf("%s: %w", shown(where), bare(err))
	}
	if int64(data.Len()) > limit {
		return nil, fmt.Errorf("%s: has more than the %d bytes expected", shown(where), limit)
	}
	return data.Bytes(), nil
}

// regular opens a file. Opening a pipe could wait for ever.
func regular(_ context.Context, path string) (io.ReadCloser, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: no regular file", path)
	}
	return os.Open(path)
}

// ask opens an address. The error wraps fs.ErrNotExist if the server has nothing there.
func (s *source) ask(ctx context.Context, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", shown(address), bare(err), core.ErrInvalid)
	}
	res, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", shown(address), bare(err))
	}
	if res.StatusCode == http.StatusOK {
		return res.Body, nil
	}
	_ = res.Body.Close()
	if res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone {
		return nil, fmt.Errorf("%s: %s: %w", shown(address), res.Status, fs.ErrNotExist)
	}
	return nil, fmt.Errorf("%s: %s", shown(address), res.Status)
}

// counter tells a function how many bytes pass.
type counter func(int64)

func (c counter) Write(p []byte) (int, error) {
	c(int64(len(p)))
	return len(p), nil
}

// bare takes the address out of an error of net/http, whose query may be secret.
func bare(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// places are the files or addresses that may hold a file.
func (s *source) places(f File) []string {
	if s.file != "" {
		return []string{s.file}
	}
	if s.dir != "" {
		return []string{f.local(s.dir), filepath.Join(s.dir, filepath.FromSlash(f.Source))}
	}
	var out []string
	for _, base := range s.bases {
		if s.mirror {
			out = append(out, below(base, f.Path))
		}
		out = append(out, below(base, f.Source))
	}
	return out
}

// below puts a path behind the path of an address. One that cannot be read stays as it is, and asking it says so.
func below(base, path string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	return u.JoinPath(path).String()
}

// shown is a place as errors name it: an address without its query and password, which may be secret.
func shown(where string) string {
	u, err := url.Parse(where)
	if err != nil || u.Host == "" {
		return where
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}
