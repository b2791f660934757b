package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// target is a platform, in the words of Go.
type target struct{ os, arch string }

var all = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"}}

func (t target) String() string { return t.os + "/" + t.arch }

// program is the name of the program's file.
func (t target) program() string {
	if t.os == "windows" {
		return name + ".exe"
	}
	return name
}

func targetsOf(only string) ([]target, error) {
	if only == "" {
		return all, nil
	}
	var out []target
	for text := range strings.SplitSeq(only, ",") {
		goos, arch, _ := strings.Cut(strings.TrimSpace(text), "/")
		t := target{goos, arch}
		if !slices.Contains(all, t) {
			return nil, fmt.Errorf("there is no platform %q; known are %v", text, all)
		}
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out, nil
}

// file names a file of the release for a platform.
func (r *release) file(t target, suffix string) string {
	return fmt.Sprintf("%s_%s_%s_%s%s", name, r.version, t.os, t.arch, suffix)
}

// path is where the program of a platform lies while the release is made.
func (r *release) path(t target) string { return filepath.Join(r.work, t.os, t.arch, t.program()) }

// programs builds the program for every platform, and for this one, which writes pages and completions.
func (r *release) programs(ctx context.Context) error {
	own := target{runtime.GOOS, runtime.GOARCH}
	targets := r.targets
	if !slices.Contains(targets, own) {
		targets = append(slices.Clone(targets), own)
	}
	for _, t := range targets {
		began := time.Now()
		if err := r.build(ctx, t); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		info, err := os.Stat(r.path(t))
		if err != nil {
			return err
		}
		fmt.Printf("release: %s: %.1f MB (%.0f s)\n", t, megabytes(info.Size()), time.Since(began).Seconds())
	}
	return nil
}

func megabytes(n int64) float64 { return float64(n) / 1e6 }

// build makes a program that depends on nothing of this machine: no C library, no folder, no state of the checkout.
func (r *release) build(ctx context.Context, t target) error {
	const at = "github.com/contextengine/contextengine/hosts/cli."
	flags := fmt.Sprintf("-s -w -buildid= -X %sreleaseVersion=%s -X %sreleaseCommit=%s -X %sreleaseDate=%s", at, r.version, at, r.commit, at, r.date.Format(time.RFC3339))
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", r.path(t), "./cmd/contextengine")
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off")
	return cmd.Run()
}
