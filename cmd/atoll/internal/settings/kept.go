package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node"
	"atoll/node/status"
	"atoll/node/store"
)

// Standing are the flags of a command that stay with the folder.
func Standing(parsed *kong.Context) []*kong.Flag { return standing(parsed.Selected()) }

func standing(command *kong.Node) []*kong.Flag {
	return slices.DeleteFunc(slices.Clone(command.Flags), func(f *kong.Flag) bool { return f.Group == nil })
}

// Read gives the flags of a command, which were not given, what a folder keeps.
func Read(dir string, command *kong.Node) error {
	k, err := load(dir, standing(command))
	if err != nil {
		return err
	}
	for _, f := range standing(command) {
		if text, ok := k.text(f.Name); ok {
			err = take(f, text)
		} else {
			err = untake(f)
		}
		if err != nil {
			return Fault(dir, err)
		}
	}
	return nil
}

// Where the value of a flag comes from, for people; a variable of the environment has its name.
const (
	fromTyped   = "the command line"
	fromConfig  = "--config"
	fromFolder  = store.SettingsFile
	fromDefault = "default"
)

// source is where a command has the value of a flag from.
func source(parsed *kong.Context, f *kong.Flag) string {
	for _, p := range parsed.Path {
		switch {
		case p.Flag == nil || p.Flag.Value != f.Value:
		case p.Resolved:
			return fromConfig
		default:
			return fromTyped
		}
	}
	for _, env := range f.Envs {
		if _, set := os.LookupEnv(env); set {
			return env
		}
	}
	return fromDefault
}

// typedAs is the value of a flag as it is typed; isDefault is whether it says nothing.
func typedAs(f *kong.Flag) (text string, isDefault bool) {
	v, unsaid := f.Target, reflect.New(f.Target.Type()).Elem()
	if f.HasDefault {
		if err := f.Parse(asTyped(f.Default), unsaid); err != nil {
			panic("default of a flag: " + err.Error()) // kong has read it before
		}
	}
	isDefault = v.Equal(unsaid)
	if v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	return fmt.Sprint(v.Interface()), isDefault
}

// asTyped has kong read a text as the value of a flag.
func asTyped(text string) *kong.Scanner {
	return kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: text})
}

// take gives a flag a value as if it were typed, and with it what check refuses of one flag alone.
func take(f *kong.Flag, text string) error {
	if f.Enum != "" && !slices.Contains(f.EnumSlice(), text) {
		return cli.BadUsage("--%s is %q; use one of %s", f.Name, text, strings.Join(f.EnumSlice(), ", "))
	}
	return f.Parse(asTyped(text), f.Target)
}

// untake gives a flag its default.
func untake(f *kong.Flag) error {
	if f.HasDefault {
		return take(f, f.Default)
	}
	f.Target.SetZero()
	return nil
}

// kept is what a folder keeps of its node's flags: values by name, as in a file of --config.
type kept map[string]any

// keptHead begins the file.
const keptHead = "# What `atoll join` was given on this machine, and what `atoll set` made of it.\n"

// load reads what a folder keeps of flags, nothing if there is no file. What cannot be read or is none of the flags is an error: a node
// without its limits may cost its owner money.
func load(dir string, flags []*kong.Flag) (kept, error) {
	path := filepath.Join(dir, store.SettingsFile)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return kept{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings of the node: %w", err)
	}
	defer f.Close()
	read, err := LoadTOML(f)
	if err != nil {
		return nil, Fault(dir, err)
	}
	t, names := read.(tomlFile), namesOf(flags)
	for _, name := range slices.Sorted(maps.Keys(t.values)) {
		if !slices.Contains(names, name) {
			return nil, Fault(dir, fmt.Errorf("%s%s: %q is no setting%s", t.name, t.line("", name), name, meant(name, names)))
		}
	}
	return t.values, nil
}

// Fault is what is wrong with what a folder keeps. The next start would meet the same, so it is final, as a wrong command line is.
func Fault(dir string, err error) error {
	path := filepath.Join(dir, store.SettingsFile)
	if !strings.Contains(err.Error(), path) {
		err = fmt.Errorf("%s: %w", path, err)
	}
	err = fmt.Errorf("what the folder keeps: %w; mend the file, or remove it and type the limits again", err)
	return &cli.UsageError{Text: err.Error(), Why: err}
}

// save writes the file, readable by its owner alone.
func (k kept) save(dir string) error {
	b := bytes.NewBufferString(keptHead)
	if err := toml.NewEncoder(b).Encode(map[string]any(k)); err != nil {
		return fmt.Errorf("keep settings: %w", err)
	}
	if err := (store.Disk{}).SaveSettings(dir, b.Bytes()); err != nil {
		return store.Explain(fmt.Errorf("keep settings: %w", err), dir)
	}
	return nil
}

// text is what is kept of a flag.
func (k kept) text(name string) (text string, ok bool) {
	value, ok := k[name]
	return fmt.Sprint(flagText(value)), ok
}

// put keeps the value of a flag; a default needs no keeping.
func (k kept) put(f *kong.Flag) {
	delete(k, f.Name)
	if text, isDefault := typedAs(f); !isDefault {
		k[f.Name] = text
	}
}

// Recall gives flags that were not given what a folder keeps, and says what is not the default, and whence.
func Recall(parsed *kong.Context, dir string) (inForce []status.Setting, err error) {
	k, err := load(dir, Standing(parsed))
	if err != nil {
		return nil, err
	}
	for _, f := range Standing(parsed) {
		from := source(parsed, f)
		if text, ok := k.text(f.Name); ok && from == fromDefault {
			if err := take(f, text); err != nil {
				return nil, Fault(dir, err)
			}
			from = fromFolder
		}
		if from == fromTyped {
			from = fromFolder // where it is kept
		}
		if text, isDefault := typedAs(f); !isDefault {
			inForce = append(inForce, status.Setting{Name: f.Name, Value: text, From: from})
		}
	}
	return inForce, nil
}

// Whence adds to what is wrong with the value of a flag where that comes from, if it was not typed, or else how to have none where
// it stays: nobody can leave that out.
func Whence(parsed *kong.Context, args []string, err error) error {
	if err == nil || parsed == nil || parsed.Selected() == nil {
		return err
	}
	said, _, _ := strings.Cut(strings.Replace(err.Error(), ":", " ", 1), " ")
	for _, f := range parsed.Flags() {
		if said != "--"+f.Name {
			continue
		}
		if slices.ContainsFunc(args, func(word string) bool { return word == said || strings.HasPrefix(word, said+"=") }) {
			if f.Group != nil {
				return fmt.Errorf("%w; `atoll set --reset %s` puts it back to the default", err, f.Name)
			}
			return err
		}
		for _, env := range f.Envs {
			if value, set := os.LookupEnv(env); set {
				return fmt.Errorf("%w; it comes from the environment: %s=%s", err, env, status.ShellWord(value))
			}
		}
		return fmt.Errorf("%w; it comes from the file of --config", err)
	}
	return err
}

// keepLearner keeps the program that trains at the next start.
func keepLearner(dir, command string) error {
	if command == node.BuiltinLearner {
		command = ""
	}
	if err := (store.Disk{}).SaveLearner(dir, []byte(command)); err != nil {
		return store.Explain(fmt.Errorf("keep the learner: %w", err), dir)
	}
	return nil
}
