package lexical

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/contextengine/contextengine/core"
	"github.com/contextengine/contextengine/internal/files"
)

// folder holds images of a store's agents, one file each. Several processes may use it at the same time, without locks:
//
//   - An image is written to a temporary file, made before the writer asks the store for the last changes, and then renamed.
//   - Who erases something does that in the store first and then removes the temporary files, then the image. So an image that was begun
//     before is not renamed any more, and one that is begun later knows of the erasure.
type folder string

const (
	imageSuffix = ".idx"
	tempSuffix  = ".tmp" // files.TempSuffix ends like this, too
)

// key is the name of an agent's files without the suffix. Names of agents need not be names of files.
func (f folder) key(agent string) string {
	h := sha256.Sum256([]byte(agent))
	return hex.EncodeToString(h[:16])
}

func (f folder) image(agent string) string { return filepath.Join(string(f), f.key(agent)+imageSuffix) }

// load reads an agent's image; fs.ErrNotExist when there is none.
func (f folder) load(agent string, cfg *Config) (*segment, core.Mark, error) {
	b, err := os.ReadFile(f.image(agent))
	if err != nil {
		return nil, "", err
	}
	h, r, err := readHeader(b)
	if err != nil {
		return nil, "", err
	}
	if h.agent != agent || h.config != configHash(cfg) {
		return nil, "", errOther
	}
	s, err := readSegment(r, cfg)
	return s, h.mark, err
}

// draft is an image that is being written.
type draft struct {
	f      *os.File
	target string
}

// begin makes the temporary file of an agent's next image.
func (f folder) begin(agent string) (*draft, error) {
	t, err := files.Temp(string(f), f.key(agent))
	if err != nil {
		return nil, err
	}
	return &draft{t, f.image(agent)}, nil
}

// publish makes the draft the agent's image; fs.ErrNotExist when something was erased since begin.
func (d *draft) publish(h header, s *segment) error {
	if err := errors.Join(writeImage(d.f, h, s), d.f.Close()); err != nil {
		_ = os.Remove(d.f.Name())
		return err
	}
	if err := os.Rename(d.f.Name(), d.target); err != nil {
		_ = os.Remove(d.f.Name())
		return err
	}
	return nil
}

// abandon removes the draft.
func (d *draft) abandon() {
	_ = d.f.Close()
	_ = os.Remove(d.f.Name())
}

// discard removes everything that is kept of an agent.
func (f folder) discard(agent string) error {
	drafts, err := filepath.Glob(filepath.Join(string(f), f.key(agent)+".*"+tempSuffix))
	if err != nil {
		return err
	}
	return removeAll(append(drafts, f.image(agent)))
}

// scrub removes all drafts, and the images of which the store knows a change since: what was erased may be in them.
func (f folder) scrub(ctx context.Context, feed core.ChangeFeed) error {
	files, err := os.ReadDir(string(f))
	if err != nil {
		return err
	}
	var drafts, images []string
	for _, file := range files {
		path := filepath.Join(string(f), file.Name())
		switch {
		case strings.HasSuffix(path, tempSuffix):
			drafts = append(drafts, path)
		case strings.HasSuffix(path, imageSuffix):
			images = append(images, path)
		}
	}
	if err := removeAll(drafts); err != nil {
		return err
	}
	// A draft may have become an image since the folder was listed.
	for _, d := range drafts {
		key, _, _ := strings.Cut(filepath.Base(d), ".")
		images = append(images, filepath.Join(string(f), key+imageSuffix))
	}
	for _, path := range images {
		clean, err := upToDate(ctx, path, feed)
		if err != nil {
			return err
		}
		if clean {
			continue
		}
		if err := removeAll([]string{path}); err != nil {
			return err
		}
	}
	return nil
}

// upToDate reports whether nothing changed since an image was written.
func upToDate(ctx context.Context, path string, feed core.ChangeFeed) (bool, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	h, _, err := readHeader(b)
	if err != nil || h.agent == "" {
		return false, nil
	}
	page, err := feed.Changes(ctx, core.ChangeQuery{Agent: h.agent, After: h.mark, Limit: 1})
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	return err == nil && len(page.Changes) == 0 && !page.More, nil
}

func removeAll(paths []string) error {
	var errs []error
	for _, path := range paths {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove file of the index: %w", err))
		}
	}
	return errors.Join(errs...)
}
