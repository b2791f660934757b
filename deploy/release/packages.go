package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

const (
	summary = "Pluggable context engine for language-model agents"
	purpose = `Keeps every message of a conversation, shows a model what fits its window,
shrinks history when it must and recalls what matters.
Contains the command line, the sidecar and the OpenBrain server.`
	maintainer = "The contextengine authors <contextengine@example.com>"
)

// packages makes a deb and an rpm for every architecture of Linux.
func (r *release) packages(context.Context) error {
	for _, t := range r.targets {
		if t.os != "linux" {
			continue
		}
		for _, format := range []string{"deb", "rpm"} {
			if err := r.pack(t, format); err != nil {
				return fmt.Errorf("%s for %s: %w", format, t, err)
			}
		}
	}
	return nil
}

func (r *release) pack(t target, format string) error {
	contents, err := r.contents(t, format)
	if err != nil {
		return err
	}
	after, err := r.staged("postinst", []byte(postinst))
	if err != nil {
		return err
	}
	before, err := r.staged("prerm", []byte(prerm))
	if err != nil {
		return err
	}
	gone, err := r.staged("postrm", []byte(postrm))
	if err != nil {
		return err
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: name, Arch: t.arch, Platform: t.os, Version: r.version, Release: "1", Section: "utils", Priority: "optional", Maintainer: maintainer,
		Description: summary + "\n" + purpose, License: "MIT", MTime: r.date, DisableGlobbing: true,
		Overridables: nfpm.Overridables{
			Contents: contents,
			Scripts:  nfpm.Scripts{PostInstall: after, PreRemove: before, PostRemove: gone},
		},
	})
	info.RPM.BuildHost = "localhost"
	info.RPM.Summary = summary
	if err := nfpm.PrepareForPackager(info, format); err != nil {
		return err
	}
	p, err := nfpm.Get(format)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := p.Package(info, &b); err != nil {
		return err
	}
	return r.write(p.ConventionalFileName(info), b.Bytes())
}

// staged puts a file where the packagers can read it.
func (r *release) staged(path string, data []byte) (string, error) {
	path = filepath.Join(r.work, "stage", path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o644)
}

// contents are the files of a package, and where they go.
func (r *release) contents(t target, format string) (files.Contents, error) {
	server, err := r.unit("contextengine-openbrain.service")
	if err != nil {
		return nil, err
	}
	sidecar, err := r.unit("contextengine-sidecar.service")
	if err != nil {
		return nil, err
	}
	settings, err := os.ReadFile(filepath.Join(r.root, "deploy", "openbrain.env.example"))
	if err != nil {
		return nil, err
	}
	const doc = "/usr/share/doc/contextengine/"
	put := map[string][]byte{
		"/usr/lib/systemd/system/contextengine-openbrain.service": server,
		"/usr/lib/systemd/user/contextengine-sidecar.service":     sidecar,
		"/usr/lib/sysusers.d/contextengine.conf":                  []byte(sysusers),
		"/usr/share/bash-completion/completions/contextengine":    r.texts.completions["bash"],
		"/usr/share/fish/vendor_completions.d/contextengine.fish": r.texts.completions["fish"],
		doc + "examples/openbrain.env":                            settings,
	}
	zsh := "/usr/share/zsh/site-functions/_contextengine"
	if format == "deb" {
		zsh = "/usr/share/zsh/vendor-completions/_contextengine"
		put[doc+"copyright"] = append([]byte("contextengine; the licences of what it is linked from are in THIRD_PARTY_NOTICES.txt.gz beside this file.\n\n"), r.texts.licence...)
		notices, err := gz(r.texts.notices)
		if err != nil {
			return nil, err
		}
		put[doc+"THIRD_PARTY_NOTICES.txt.gz"] = notices
		put["/usr/share/lintian/overrides/contextengine"] = []byte(overrides)
		log, err := gz([]byte(fmt.Sprintf("%s (%s-1) unstable; urgency=medium\n\n  * Release %s; see CHANGELOG.md of the sources.\n\n -- %s  %s\n",
			name, debVersion(r.version), r.version, maintainer, r.date.Format("Mon, 02 Jan 2006 15:04:05 -0700"))))
		if err != nil {
			return nil, err
		}
		put[doc+"changelog.Debian.gz"] = log
	} else {
		put["/usr/share/licenses/contextengine/LICENSE"] = r.texts.licence
		put["/usr/share/licenses/contextengine/THIRD_PARTY_NOTICES.txt"] = r.texts.notices
	}
	put[zsh] = r.texts.completions["zsh"]
	for _, p := range r.texts.pages {
		data, err := gz(p.data)
		if err != nil {
			return nil, err
		}
		put["/usr/share/man/man1/"+p.name+".gz"] = data
	}
	info := func(mode os.FileMode) *files.ContentFileInfo {
		return &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.date}
	}
	out := files.Contents{{Source: r.path(t), Destination: "/usr/bin/" + name, FileInfo: info(0o755)}}
	for at, data := range put {
		source, err := r.staged(filepath.Join(format, at), data)
		if err != nil {
			return nil, err
		}
		out = append(out, &files.Content{Source: source, Destination: at, FileInfo: info(0o644)})
	}
	return out, nil // the packagers sort them
}

// unit is a unit of systemd as a package brings it, with the program where the package puts it.
func (r *release) unit(file string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(r.root, "deploy", file))
	return bytes.ReplaceAll(text, []byte("/usr/local/bin/"), []byte("/usr/bin/")), err
}

func debVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

// The user of the server's unit; the sidecar's is whoever starts it. Nothing is started by an installation: the server needs a key and an address first.
const sysusers = "u openbrain - \"OpenBrain server\" /var/lib/openbrain\n"

const postinst = `#!/bin/sh
set -e
if command -v systemd-sysusers >/dev/null 2>&1; then systemd-sysusers contextengine.conf; fi
if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
`

const prerm = `#!/bin/sh
set -e
# An update ($1 is "upgrade" for deb, 1 for rpm) leaves the service as it is.
case "$1" in upgrade | 1) exit 0 ;; esac
if [ -d /run/systemd/system ]; then systemctl --no-reload disable --now contextengine-openbrain.service || true; fi
`

const postrm = `#!/bin/sh
set -e
if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
`

const overrides = `# A Go program without C: there is no library to link.
contextengine: statically-linked-binary
# Not uploaded to Debian, so that there is no bug to close.
contextengine: initial-upload-closes-no-bugs *
`
