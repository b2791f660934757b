package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
)

const sumsFile = "SHA256SUMS"

// sum is the SHA-256 of a file of the release.
func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// checksums writes SHA256SUMS, in the form of sha256sum, and has it signed.
func (r *release) checksums(ctx context.Context) error {
	entries, err := os.ReadDir(r.out) // sorted by name
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range entries {
		sum, err := r.sum(e.Name())
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s  %s\n", sum, e.Name())
	}
	if err := r.write(sumsFile, b.Bytes()); err != nil {
		return err
	}
	words := strings.Fields(r.sign)
	if len(words) == 0 {
		fmt.Println("release: NOT SIGNED: there is no key. Set RELEASE_SIGN to a command that signs the file named by its last argument, such as \"gpg --armor --detach-sign\".")
		return nil
	}
	cmd := exec.CommandContext(ctx, words[0], append(words[1:], filepath.Join(r.out, sumsFile))...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = r.out, os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sign %s: %w", sumsFile, err)
	}
	return nil
}

var formulaText = template.Must(template.New("formula").Parse(`class Contextengine < Formula
  desc "Pluggable context engine for language-model agents"
  homepage "{{.URL}}"
  version "{{.Version}}"
  license "MIT"
{{range .Systems}}
  on_{{.Name}} do
{{- range .Archives}}
    on_{{.CPU}} do
      url "{{$.URL}}/{{.File}}"
      sha256 "{{.Sum}}"
    end
{{- end}}
  end
{{end}}
  def install
    bin.install "contextengine"
    man1.install Dir["man/man1/*.1"]
    bash_completion.install "completions/contextengine.bash" => "contextengine"
    zsh_completion.install "completions/_contextengine"
    fish_completion.install "completions/contextengine.fish"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/contextengine version")
  end
end
`))

type archive struct{ CPU, File, Sum string }

type system struct {
	Name     string
	Archives []archive
}

// formula tells Homebrew which archive is for whom.
func (r *release) formula(context.Context) error {
	var systems []system
	for _, names := range [][2]string{{"darwin", "macos"}, {"linux", "linux"}} {
		goos, s := names[0], system{Name: names[1]}
		for _, t := range r.targets {
			if t.os != goos {
				continue
			}
			file := r.file(t, ".tar.gz")
			sum, err := r.sum(file)
			if err != nil {
				return err
			}
			cpu := map[string]string{"amd64": "intel", "arm64": "arm"}[t.arch]
			s.Archives = append(s.Archives, archive{CPU: cpu, File: file, Sum: sum})
		}
		if len(s.Archives) > 0 {
			systems = append(systems, s)
		}
	}
	var b bytes.Buffer
	if err := formulaText.Execute(&b, struct {
		URL, Version string
		Systems      []system
	}{r.url, r.version, systems}); err != nil {
		return err
	}
	return r.write(name+".rb", b.Bytes())
}

// report says what was made.
func (r *release) report() error {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		fmt.Printf("%8.2f MB  %s\n", megabytes(info.Size()), e.Name())
	}
	fmt.Println("release: in", r.out)
	return nil
}
