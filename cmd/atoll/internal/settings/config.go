package settings

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"

	"atoll/cmd/atoll/internal/cli"
)

// maxConfigFile bounds a configuration file: it is a page of text.
const maxConfigFile = 1 << 20

// tomlFile gives flags the values of a TOML file. A key is the name of a flag.
// Keys at the top are for every command, keys in a table are for the command of
// that name and go first.
type tomlFile struct {
	name   string // for messages
	text   string
	values map[string]any
}

// line is which line of the file a key is in, for messages; "" if that cannot be told. table is "" for the keys at the top.
func (t tomlFile) line(table, key string) string {
	in := ""
	for i, line := range strings.Split(t.text, "\n") {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "["); ok {
			in, _, _ = strings.Cut(name, "]")
		}
		word, _, _ := strings.Cut(line, "=")
		if in == table && strings.Trim(word, " \t\"'") == key || table == "" && in == key {
			return fmt.Sprintf(", line %d", i+1)
		}
	}
	return ""
}

// meant is the name that a misspelt one is nearest to, as a hint.
func meant(word string, names []string) string {
	if near := cli.Nearest(word, names); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// LoadTOML reads a configuration file for kong.
func LoadTOML(r io.Reader) (kong.Resolver, error) {
	t := tomlFile{name: "configuration file"}
	if f, ok := r.(*os.File); ok {
		t.name += " " + f.Name()
	}
	b, err := io.ReadAll(io.LimitReader(r, maxConfigFile+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	if len(b) > maxConfigFile {
		return nil, fmt.Errorf("%s: more than %d bytes; is it the right file?", t.name, maxConfigFile)
	}
	t.text = string(b)
	err = toml.Unmarshal(b, &t.values)
	if at := (*toml.DecodeError)(nil); errors.As(err, &at) {
		line, _ := at.Position()
		return nil, fmt.Errorf("%s, line %d: %w", t.name, line, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.name, err)
	}
	return t, nil
}

// Validate refuses keys that no command knows: a misspelt one would be ignored.
func (t tomlFile) Validate(app *kong.Application) error {
	for key, value := range t.values {
		table, isTable := value.(map[string]any)
		if !isTable {
			if !slices.ContainsFunc(app.Leaves(true), func(n *kong.Node) bool { return hasFlag(n, key) }) {
				return cli.BadUsage("%s%s: no command has a flag %q%s", t.name, t.line("", key), key, meant(key, flagNames(app.Node)))
			}
			continue
		}
		node := commandNamed(app, key)
		if node == nil {
			return cli.BadUsage("%s%s: table [%s]: there is no such command", t.name, t.line("", key), key)
		}
		for key := range table {
			if !hasFlag(node, key) {
				return cli.BadUsage("%s%s: table [%s]: atoll %s has no flag %q%s", t.name, t.line(node.Name, key), node.Name, node.Name, key, meant(key, flagNames(node)))
			}
		}
	}
	return nil
}

func commandNamed(app *kong.Application, name string) *kong.Node {
	for _, n := range app.Children {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// hasFlag tells whether a command or one below it has a flag.
func hasFlag(n *kong.Node, name string) bool { return slices.Contains(flagNames(n), name) }

// flagNames are those of a command and of all below it.
func flagNames(n *kong.Node) []string {
	names := namesOf(n.Flags)
	for _, child := range n.Children {
		names = append(names, flagNames(child)...)
	}
	return names
}

func namesOf(flags []*kong.Flag) (names []string) {
	for _, f := range flags {
		names = append(names, f.Name)
	}
	return names
}

// Resolve implements kong.Resolver. The environment goes before the file.
func (t tomlFile) Resolve(ctx *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	table, _ := t.values[strings.Fields(ctx.Command() + " ")[0]].(map[string]any)
	for _, values := range []map[string]any{table, t.values} {
		value, ok := values[flag.Name]
		if _, isTable := value.(map[string]any); ok && !isTable {
			if list, ok := value.([]any); ok && flag.Tag.Sep == noSep {
				return list, nil
			}
			return flagText(value), nil
		}
	}
	return nil, nil
}

// noSep is what kong has for a flag whose values have commas of their own.
const noSep = -1

// flagText writes a TOML value as it would be typed after a flag.
func flagText(value any) any {
	switch v := value.(type) {
	case bool:
		return v
	case []any:
		var parts []string
		for _, x := range v {
			parts = append(parts, fmt.Sprint(x))
		}
		return strings.Join(parts, ",")
	}
	return fmt.Sprint(value)
}
