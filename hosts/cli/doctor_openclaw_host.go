package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// hostRelease is a version of OpenClaw: year, month, number.
type hostRelease [3]int

func (v hostRelease) String() string { return fmt.Sprintf("%d.%d.%d", v[0], v[1], v[2]) }

func (v hostRelease) before(w hostRelease) bool { return slices.Compare(v[:], w[:]) < 0 }

var (
	// oldestHost is what the plugin's package asks for.
	oldestHost = hostRelease{2026, 5, 27}
	// firstUnknown is the first one after 2026.7.1, whose contract is known; the next that is known is firstDurable.
	firstUnknown = hostRelease{2026, 7, 2}
	firstDurable = hostRelease{2026, 8, 1}
	// firstSound no longer degrades the first turn of each session.
	firstSound = hostRelease{2026, 8, 2}
)

var releaseForm = regexp.MustCompile(`^v?(\d{4})\.(\d{1,2})\.(\d{1,3})(?:[-+.].*)?$`)

func parseRelease(s string) (v hostRelease, ok bool) {
	m := releaseForm.FindStringSubmatch(s)
	for i := range v {
		if m == nil {
			return v, false
		}
		v[i], _ = strconv.Atoi(m[i+1])
	}
	return v, true
}

// hostVersion says whether the host's version is one that the plugin works with.
func (o *inspection) hostVersion(c hostConfig) {
	const name, update = "host version", "update the host (npm install -g openclaw) and restart the gateway"
	v, from, ok := o.findHost(c)
	switch {
	case !ok:
		o.note(name, "unknown: no openclaw program on PATH, and the configuration does not say which one wrote it", "run doctor with the gateway's PATH; hosts from 2026.8.2 are the ones to use")
	case v.before(oldestHost):
		o.wrong(name, fmt.Sprintf("%s (%s) is too old: the plugin needs %s", v, from, oldestHost), update)
	case v.before(firstUnknown):
		o.ok(name, "%s (%s): older than durable turns; the plugin is called after each turn instead", v, from)
	case v.before(firstDurable):
		o.note(name, fmt.Sprintf("%s (%s) is between 2026.7 and 2026.8: whether it uses durable turns is not known", v, from), update)
	case v.before(firstSound):
		o.note(name, fmt.Sprintf("%s (%s) degrades fresh turns to legacy", v, from), update)
	default:
		o.ok(name, "%s (%s)", v, from)
	}
}

// findHost returns the host's version and where it is said.
func (o *inspection) findHost(c hostConfig) (hostRelease, string, bool) {
	for _, dir := range filepath.SplitList(o.app.getenv("PATH")) {
		program, err := filepath.EvalSymlinks(filepath.Join(dir, "openclaw"))
		if err != nil {
			continue
		}
		// a package manager links to the package, or puts a script beside the folder that holds it
		folders := []string{filepath.Join(dir, "..", "lib", "node_modules", "openclaw"), filepath.Join(dir, "node_modules", "openclaw"), filepath.Join(dir, "..", "openclaw")}
		for up := filepath.Dir(program); up != filepath.Dir(up); up = filepath.Dir(up) {
			folders = append(folders, up)
		}
		for _, folder := range folders {
			file := filepath.Join(folder, "package.json")
			if _, err := os.Stat(file); err != nil {
				continue
			}
			if pkg, err := readJSON5(file); err == nil && pkg.text("name") == "openclaw" {
				if v, ok := parseRelease(pkg.text("version")); ok {
					return v, "the program on PATH", true
				}
			}
		}
	}
	v, ok := parseRelease(c.tree.at("meta").text("lastTouchedVersion"))
	return v, "the one that wrote the configuration", ok
}
