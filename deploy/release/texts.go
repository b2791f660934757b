package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// texts go into every archive and package, by the program's own account.
type texts struct {
	licence, readme, notices []byte
	pages                    []file            // man pages, sorted
	completions              map[string][]byte // by shell
	modules                  []*debug.Module   // what the program is linked from, sorted
}

// file is a file of an archive.
type file struct {
	name string
	data []byte
	exec bool
}

// gather asks the program of this platform for its pages and completions, and the module cache for the licences of what is linked.
func (r *release) gather(ctx context.Context) error {
	program := r.path(target{runtime.GOOS, runtime.GOARCH})
	var err error
	if r.texts.licence, err = os.ReadFile(filepath.Join(r.root, "LICENSE")); err != nil {
		return err
	}
	if r.texts.readme, err = os.ReadFile(filepath.Join(r.root, "README.md")); err != nil {
		return err
	}
	pages := filepath.Join(r.work, "man")
	if _, err := r.output(ctx, program, "man", pages); err != nil {
		return err
	}
	entries, err := os.ReadDir(pages)
	if err != nil {
		return err
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(pages, e.Name()))
		if err != nil {
			return err
		}
		r.texts.pages = append(r.texts.pages, file{name: e.Name(), data: data})
	}
	r.texts.completions = map[string][]byte{}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, err := r.output(ctx, program, "completion", shell)
		if err != nil {
			return err
		}
		r.texts.completions[shell] = []byte(out)
	}
	for _, t := range r.targets { // platforms differ in a module or two
		modules, err := linked(r.path(t))
		if err != nil {
			return err
		}
		r.texts.modules = append(r.texts.modules, modules...)
	}
	slices.SortFunc(r.texts.modules, func(a, b *debug.Module) int { return strings.Compare(a.Path, b.Path) })
	r.texts.modules = slices.CompactFunc(r.texts.modules, func(a, b *debug.Module) bool { return a.Path == b.Path })
	return r.notices(ctx)
}

// linked lists the modules in a program, replaced ones as what replaces them.
func linked(program string) ([]*debug.Module, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	out := info.Deps
	for i, m := range out {
		if m.Replace != nil {
			out[i] = m.Replace
		}
	}
	return out, nil
}

var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-.].*)?$`)

// notices collects the licences that have to be passed on with the program.
func (r *release) notices(ctx context.Context) error {
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}"}
	for _, m := range r.texts.modules {
		args = append(args, m.Path)
	}
	list, err := r.output(ctx, "go", args...)
	if err != nil {
		return err
	}
	goroot, err := r.output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintln(&b, "contextengine contains these works of others, each under its own licence.")
	for line := range strings.Lines("Go and its standard library\t" + goroot + list) {
		module, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("%s: %w; run go mod download", module, err)
		}
		found := false
		for _, e := range entries {
			if e.IsDir() || !licenceName.MatchString(e.Name()) {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(&b, "\n%s\n%s (%s)\n\n%s\n", strings.Repeat("=", 80), module, e.Name(), bytes.TrimSpace(data))
		}
		if !found {
			return fmt.Errorf("%s has no licence in %s", module, dir)
		}
	}
	r.texts.notices = b.Bytes()
	return nil
}
