// Package pathflag makes flags that are paths. No shell expands what stands behind "=", nor what another program or the environment hands over, so a path is
// read here as one of a configuration is, by package homepath. It holds for whoever sets the flag: the command line, or a variable by way of Set.
package pathflag

import (
	"github.com/spf13/pflag"

	"github.com/contextengine/contextengine/internal/homepath"
)

// Var adds a flag that is a path.
func Var(fs *pflag.FlagSet, p *string, name, value, usage string) {
	VarP(fs, p, name, "", value, usage)
}

// VarP is Var with a name of one letter.
func VarP(fs *pflag.FlagSet, p *string, name, letter, value, usage string) {
	fs.StringVarP(p, name, letter, value, usage)
	f := fs.Lookup(name)
	f.Value = path{f.Value}
}

// SliceVar adds a flag that is a list of paths, with commas between them.
func SliceVar(fs *pflag.FlagSet, p *[]string, name, usage string) {
	fs.StringSliceVar(p, name, nil, usage)
	f := fs.Lookup(name)
	f.Value, f.DefValue = paths{f.Value.(list)}, "" // help shows no default where there is none
}

type path struct{ pflag.Value }

// Set implements pflag.Value.
func (v path) Set(s string) error {
	s, err := homepath.Expand(s)
	if err != nil {
		return err
	}
	return v.Value.Set(s)
}

type list interface {
	pflag.Value
	pflag.SliceValue
}

type paths struct{ list }

// Set implements pflag.Value.
func (v paths) Set(s string) error {
	if err := v.list.Set(s); err != nil {
		return err
	}
	all := v.GetSlice()
	for i, s := range all {
		var err error
		if all[i], err = homepath.Expand(s); err != nil {
			return err
		}
	}
	return v.Replace(all)
}
