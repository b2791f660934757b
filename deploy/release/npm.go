package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed npm/contextengine.mjs
var launcher []byte

//go:embed npm/README.md
var launcherReadme []byte

// mostPacked is how large a packed package may be, in bytes: hosts have been seen to fetch those of all platforms.
const mostPacked = 22_000_000

// npmPlatform names a platform as Node does.
func npmPlatform(t target) (goos, cpu string) {
	return strings.Replace(t.os, "windows", "win32", 1), strings.Replace(t.arch, "amd64", "x64", 1)
}

func npmName(t target) string {
	goos, cpu := npmPlatform(t)
	return name + "-" + goos + "-" + cpu
}

// npmManifest is a package.json; its keys are in the order that people expect.
type npmManifest struct {
	Name                 string            `json:"name"`
	Version              string            `json:"version"`
	Description          string            `json:"description"`
	License              string            `json:"license"`
	Type                 string            `json:"type,omitempty"`
	Bin                  map[string]string `json:"bin,omitempty"`
	OS                   []string          `json:"os,omitempty"`
	CPU                  []string          `json:"cpu,omitempty"`
	Engines              map[string]string `json:"engines,omitempty"`
	PreferUnplugged      bool              `json:"preferUnplugged,omitempty"` // a program cannot be run out of an archive
	OptionalDependencies map[string]string `json:"optionalDependencies,omitempty"`
}

// npm makes a package with the program for each platform, one that runs it by name, and the plugin for OpenClaw. None has a script that an installation would run.
func (r *release) npm(context.Context) error {
	for _, t := range r.targets {
		program, err := os.ReadFile(r.path(t))
		if err != nil {
			return err
		}
		goos, cpu := npmPlatform(t)
		manifest, err := jsonFile(npmManifest{Name: npmName(t), Version: r.version, Description: "contextengine for " + t.String(), License: "MIT", OS: []string{goos}, CPU: []string{cpu}, PreferUnplugged: true})
		if err != nil {
			return err
		}
		err = r.npmPack(npmName(t), []file{{name: "package.json", data: manifest}, {name: "bin/" + t.program(), data: program, exec: true},
			{name: "LICENSE", data: r.texts.licence}, {name: "THIRD_PARTY_NOTICES.txt", data: r.texts.notices}})
		if err != nil {
			return err
		}
	}
	manifest, err := jsonFile(npmManifest{Name: name, Version: r.version, Description: summary, License: "MIT", Type: "module",
		Bin: map[string]string{name: "contextengine.mjs"}, Engines: map[string]string{"node": ">=20.19"}, OptionalDependencies: r.platforms()})
	if err != nil {
		return err
	}
	err = r.npmPack(name, []file{{name: "package.json", data: manifest}, {name: "contextengine.mjs", data: launcher, exec: true}, {name: "README.md", data: launcherReadme}, {name: "LICENSE", data: r.texts.licence}})
	if err != nil {
		return err
	}
	return r.plugin()
}

// platforms are the packages of all platforms, of exactly this version, those too that this run does not make.
func (r *release) platforms() map[string]string {
	out := map[string]string{}
	for _, t := range all {
		out[npmName(t)] = r.version
	}
	return out
}

func jsonFile(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	return append(data, '\n'), err
}

func (r *release) npmPack(name string, files []file) error {
	for i := range files {
		files[i].name = "package/" + files[i].name
	}
	data, err := tarGz(files, r.date)
	if err != nil {
		return err
	}
	if len(data) > mostPacked {
		return fmt.Errorf("%s is %.1f MB packed, more than %.0f", name, megabytes(int64(len(data))), megabytes(mostPacked))
	}
	return r.write(name+"-"+r.version+".tgz", data)
}

// plugin packs the plugin as it stands in the tree, with the release's version and the packages of all platforms.
func (r *release) plugin() error {
	folder := filepath.Join(r.root, "hosts", "openclaw", "plugin")
	names, err := pluginFiles(folder)
	if err != nil {
		return err
	}
	var files []file
	for _, path := range names {
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		inside = filepath.ToSlash(inside)
		switch inside {
		case "package.json":
			if data, err = r.pluginManifest(data); err != nil {
				return err
			}
		case "openclaw.plugin.json", "dist/names.js":
			if data, err = stamped(data, r.version); err != nil {
				return fmt.Errorf("%s: %w", inside, err)
			}
		}
		files = append(files, file{name: inside, data: data})
	}
	return r.npmPack("openclaw-openbrain-context", files)
}

// pluginFiles are the paths of what the plugin's package.json names, and of itself, sorted.
func pluginFiles(folder string) ([]string, error) {
	data, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err != nil {
		return nil, err
	}
	var m struct {
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	out := []string{filepath.Join(folder, "package.json")}
	for _, name := range m.Files {
		err := filepath.WalkDir(filepath.Join(folder, filepath.FromSlash(name)), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("the plugin's files: %w", err)
		}
	}
	slices.Sort(out)
	return out, nil
}

// pluginManifest is the plugin's package.json without what only its development needs.
func (r *release) pluginManifest(data []byte) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, err
	}
	delete(m, "scripts")
	delete(m, "devDependencies")
	m["version"] = r.version
	m["optionalDependencies"] = r.platforms()
	// The host looks whether the program for its platform came along.
	host, _ := m["openclaw"].(map[string]any)
	install, ok := host["install"].(map[string]any)
	if !ok {
		return nil, errors.New("package.json: openclaw.install is missing")
	}
	install["requiredPlatformPackages"] = slices.Sorted(maps.Keys(r.platforms()))
	return jsonFile(m)
}

var stampedVersion = regexp.MustCompile(`((?:"version":|\bVERSION =) ")\d[^"]*(")`)

// stamped is a file with its one version replaced.
func stamped(data []byte, version string) ([]byte, error) {
	if n := len(stampedVersion.FindAll(data, -1)); n != 1 {
		return nil, fmt.Errorf("it names %d versions, want one", n)
	}
	return stampedVersion.ReplaceAll(data, []byte("${1}"+version+"${2}")), nil
}
