package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// boms lists, for each platform, the modules in its program, in the form of CycloneDX. What is listed is read from the program itself.
func (r *release) boms(context.Context) error {
	for _, t := range r.targets {
		modules, err := linked(r.path(t))
		if err != nil {
			return err
		}
		program, err := os.ReadFile(r.path(t))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(program)
		self := "pkg:golang/github.com/contextengine/contextengine@" + r.version
		bom := cyclonedx.NewBOM()
		bom.Metadata = &cyclonedx.Metadata{Timestamp: r.date.Format(time.RFC3339), Component: &cyclonedx.Component{
			BOMRef: self, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: r.version, PackageURL: self,
			Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "MIT"}}},
			Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		}}
		var components []cyclonedx.Component
		var refs []string
		for _, m := range modules {
			url := "pkg:golang/" + m.Path + "@" + m.Version
			components = append(components, cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: m.Path, Version: m.Version, PackageURL: url,
				Properties: &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}})
			refs = append(refs, url)
		}
		bom.Components = &components
		bom.Dependencies = &[]cyclonedx.Dependency{{Ref: self, Dependencies: &refs}}
		var b bytes.Buffer
		if err := cyclonedx.NewBOMEncoder(&b, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
			return err
		}
		if err := r.write(r.file(t, ".cdx.json"), []byte(strings.TrimSpace(b.String())+"\n")); err != nil {
			return err
		}
	}
	return nil
}
