package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user of the image, and owner of its data.
const user = 65532

// images makes, for each architecture of Linux, an archive in the layout of OCI: one static program on nothing, not root.
func (r *release) images(context.Context) error {
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		image, err := r.image(t)
		if err != nil {
			return err
		}
		folder := filepath.Join(r.work, "image", t.arch)
		path, err := layout.Write(folder, empty.Index)
		if err != nil {
			return err
		}
		err = path.AppendImage(image, layout.WithPlatform(v1.Platform{OS: t.os, Architecture: t.arch}), layout.WithAnnotations(map[string]string{
			"org.opencontainers.image.ref.name": r.version,
			"io.containerd.image.name":          "docker.io/library/" + name + ":" + r.version, // the name that docker load gives it
		}))
		if err != nil {
			return err
		}
		var files []file
		err = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error { // in the order of names
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			inside, err := filepath.Rel(folder, path)
			files = append(files, file{name: filepath.ToSlash(inside), data: data})
			return err
		})
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := tarTo(&b, files, r.date); err != nil {
			return err
		}
		if err := r.write(r.file(t, "_image.tar"), b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) image(t target) (v1.Image, error) {
	program, err := os.ReadFile(r.path(t))
	if err != nil {
		return nil, err
	}
	content, err := r.layer(program)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "contextengine " + r.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, r.config(t, config.DeepCopy()))
}

// config starts the OpenBrain server; every other command of the program can be given instead.
func (r *release) config(t target, c *v1.ConfigFile) *v1.ConfigFile {
	c.OS, c.Architecture, c.Created = t.os, t.arch, v1.Time{Time: r.date}
	c.Config = v1.Config{
		User: "65532:65532", Entrypoint: []string{"/contextengine"}, Cmd: []string{"openbrain", "serve"}, WorkingDir: "/data", StopSignal: "SIGTERM",
		ExposedPorts: map[string]struct{}{"8787/tcp": {}}, Volumes: map[string]struct{}{"/data": {}},
		Env: []string{
			"OPENBRAIN_SERVE_LISTEN=0.0.0.0:8787", "OPENBRAIN_SERVE_STORE=sqlite", "OPENBRAIN_SERVE_PATH=/data/openbrain.db", "OPENBRAIN_SERVE_KEYS=/data/keys.json", "TMPDIR=/data", "HOME=/data",
		},
		Healthcheck: &v1.HealthConfig{Test: []string{"CMD", "/contextengine", "openbrain", "health"}, Interval: 30 * time.Second, Timeout: 6 * time.Second, StartPeriod: 60 * time.Second, Retries: 3},
		Labels: map[string]string{
			"org.opencontainers.image.title": name, "org.opencontainers.image.version": r.version, "org.opencontainers.image.revision": r.commit,
			"org.opencontainers.image.created": r.date.Format(time.RFC3339), "org.opencontainers.image.licenses": "MIT",
		},
	}
	return c
}

// layer is the whole file system.
func (r *release) layer(program []byte) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	folder := func(name string, mode int64, owner int) error {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: mode, Uid: owner, Gid: owner, ModTime: r.date, Format: tar.FormatUSTAR})
	}
	put := func(name string, mode int64, data []byte) error {
		if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), ModTime: r.date, Format: tar.FormatUSTAR}); err != nil {
			return err
		}
		_, err := w.Write(data)
		return err
	}
	steps := []error{
		put("contextengine", 0o755, program),
		folder("data/", 0o700, user), // a new volume takes the owner of the folder that it is mounted over
		folder("etc/", 0o755, 0), folder("etc/ssl/", 0o755, 0), folder("etc/ssl/certs/", 0o755, 0),
		put("etc/ssl/certs/ca-certificates.crt", 0o644, certificates()),
		put("etc/passwd", 0o644, []byte("openbrain:x:65532:65532::/data:/nonexistent\n")),
		put("etc/group", 0o644, []byte("openbrain:x:65532:\n")),
		folder("licenses/", 0o755, 0), put("licenses/LICENSE", 0o644, r.texts.licence), put("licenses/THIRD_PARTY_NOTICES.txt", 0o644, r.texts.notices),
		w.Close(),
	}
	for _, err := range steps {
		if err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// certificates are the authorities that an embedder behind https is checked against. Those that are trusted for some names or times alone cannot be written into such a file and are left out.
func certificates() []byte {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // a buffer takes everything
		}
	}
	return b.Bytes()
}
