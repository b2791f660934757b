// Command release makes everything that a release consists of, from this repository and the module cache alone: programs, archives, packages for Debian and Red Hat, images, packages for
// npm, a formula for Homebrew, lists of what is inside, and checksums. From the repository's root:
//
//	make release VERSION=0.1.0
//
// The same commit, version and Go make the same bytes. It is a module of its own, so that what it needs never becomes part of the product.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// name is that of the program, its packages and its image.
const name = "contextengine"

// release is what all steps share.
type release struct {
	root, out, work string // the repository, where files go, and a folder for the time between
	version, commit string
	date            time.Time // of the commit: the time of every file
	url             string    // where the archives will be found
	sign            string
	targets         []target
	texts           texts
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// semantic is the form of a version at semver.org without build metadata: no number has zeros in front.
var semantic = regexp.MustCompile(`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*)(\.(0|[1-9]\d*|\d*[A-Za-z-][0-9A-Za-z-]*))*)?$`)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "semantic version without v, such as 0.1.0")
	root := flags.String("root", "../..", "the repository")
	out := flags.String("out", "", "folder for the files; it must not exist, or be empty (default ROOT/dist/VERSION)")
	only := flags.String("only", "", "platforms to build, such as linux/amd64,windows/arm64 (default: all)")
	url := flags.String("url", "https://example.com/contextengine/releases", "address of the folder that archives are published in, for the Homebrew formula")
	sign := flags.String("sign", os.Getenv("RELEASE_SIGN"), "command that signs the file named by its last argument, such as \"gpg --armor --detach-sign\" (default: $RELEASE_SIGN)")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := &release{version: *version, url: strings.TrimRight(*url, "/"), sign: *sign}
	if !semantic.MatchString(r.version) {
		return fmt.Errorf("version %q is not semantic, or has build metadata (+...), which packages cannot say; give -version, such as 0.1.0 or 0.2.0-rc.1", r.version)
	}
	var err error
	if r.root, err = filepath.Abs(*root); err != nil {
		return err
	}
	if *out == "" {
		*out = filepath.Join(r.root, "dist", r.version)
	}
	if r.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if entries, _ := os.ReadDir(r.out); len(entries) > 0 {
		return fmt.Errorf("%s is not empty; remove it or name another -out", r.out)
	}
	if r.targets, err = targetsOf(*only); err != nil {
		return err
	}
	if err := r.origin(ctx); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	if r.work, err = os.MkdirTemp("", "release-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.work)
	return r.make(ctx)
}

// make plays the steps; each leaves files in out.
func (r *release) make(ctx context.Context) error {
	steps := []struct {
		name string
		do   func(context.Context) error
	}{
		{"programs", r.programs},
		{"pages, completions and licences", r.gather},
		{"archives", r.archives},
		{"deb and rpm", r.packages},
		{"images", r.images},
		{"npm packages", r.npm},
		{"Homebrew formula", r.formula},
		{"bills of materials", r.boms},
		{"checksums", r.checksums},
	}
	for _, s := range steps {
		began := time.Now()
		if err := s.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		fmt.Printf("release: %s (%.1f s)\n", s.name, time.Since(began).Seconds())
	}
	return r.report()
}

// origin finds the commit, and the time that files are given: SOURCE_DATE_EPOCH, else that of the commit.
func (r *release) origin(ctx context.Context) error {
	text, err := r.output(ctx, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return fmt.Errorf("%s is no clone with a commit, which a release is made from: %w", r.root, err)
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(text), " ")
	r.commit = commit
	if dirty, err := r.output(ctx, "git", "status", "--porcelain"); err != nil {
		return err
	} else if dirty != "" {
		fmt.Println("release: the work tree has changes that are not committed: this is no release to publish")
		r.commit += "-dirty"
	}
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH or the commit's time is no number of seconds: %w", err)
	}
	r.date = time.Unix(n, 0).UTC()
	return nil
}

// output runs a program in the repository.
func (r *release) output(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir, cmd.Stderr = r.root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", program, strings.Join(args, " "), err)
	}
	return string(out), nil
}
