package settings

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"atoll/cmd/atoll/internal/cli"
	"atoll/node"
	"atoll/node/status"
	"atoll/node/store"
)

// atOnce are the settings that a running node takes.
var atOnce = []string{"up", "down", "quota", "hours", "battery", "pace"}

// Folder is that of a node whose settings are shown or changed.
type Folder struct {
	dir    string
	flags  []*kong.Flag // of the command, that stay
	kept   kept
	client *status.Client // nil where no node runs
	was    []status.Setting
}

// Open reads what a folder keeps, and asks the node that runs there.
func Open(ctx context.Context, dir string, parsed *kong.Context) (s *Folder, err error) {
	s = &Folder{dir: dir, flags: Standing(parsed)}
	if s.kept, err = load(dir, s.flags); err != nil {
		return nil, err
	}
	return s, s.ask(ctx)
}

// ask asks the node that runs, if there is one, what it goes by.
func (s *Folder) ask(ctx context.Context) error {
	client, err := status.Dial(s.dir)
	if err == nil {
		var now status.Snapshot
		if now, err = client.Snapshot(ctx); err == nil || errors.Is(err, status.ErrStarting) {
			err = nil
			s.client, s.was = client, now.Settings
		}
	}
	if errors.Is(err, status.ErrNotRunning) {
		return nil
	}
	return err
}

// Changed are the flags that were typed or are reset.
func (s *Folder) Changed(parsed *kong.Context, reset []string) (changed []*kong.Flag, err error) {
	for _, f := range s.flags {
		typed := source(parsed, f) == fromTyped
		if named := slices.Contains(reset, f.Name); named && typed {
			return nil, cli.BadUsage("--%s is typed, and named in --reset: leave one of them out", f.Name)
		} else if named || typed {
			changed = append(changed, f)
		}
	}
	for _, name := range reset {
		if name == "learner" {
			return nil, cli.BadUsage("--reset %q: the program that trains is put back by --learner %s", name, node.BuiltinLearner)
		}
		if !slices.ContainsFunc(s.flags, func(f *kong.Flag) bool { return f.Name == name }) {
			return nil, cli.BadUsage("--reset %q is no setting; `atoll set` shows them%s", name, meant(name, namesOf(s.flags)))
		}
	}
	return changed, nil
}

// Overlay gives the flags that are not typed what the node goes by, or will.
func (s *Folder) Overlay(changed []*kong.Flag, reset []string) error {
	for _, f := range s.flags {
		if slices.Contains(changed, f) && !slices.Contains(reset, f.Name) {
			continue
		}
		err := untake(f)
		if text, ok := s.inForce(f.Name); ok && !slices.Contains(changed, f) {
			err = take(f, text.Value)
		}
		if err != nil {
			return Fault(s.dir, err)
		}
	}
	return nil
}

// inForce is what the node of the folder goes by, or will at its next start.
func (s *Folder) inForce(name string) (now status.Setting, ok bool) {
	if s.client == nil {
		text, ok := s.kept.text(name)
		return status.Setting{Name: name, Value: text, From: fromFolder}, ok
	}
	i := slices.IndexFunc(s.was, func(w status.Setting) bool { return w.Name == name })
	if i < 0 {
		return now, false
	}
	return s.was[i], true
}

// Change keeps what was changed, and a learner unless it is "", and tells the node that runs.
func (s *Folder) Change(ctx context.Context, out *cli.Console, changed []*kong.Flag, to node.Change, learner string) error {
	var now, later []string
	for _, f := range changed {
		s.kept.put(f)
		text, isDefault := typedAs(f)
		if isDefault {
			text = "back to " + defaultText(f)
		}
		if said := f.Name + " " + text; slices.Contains(atOnce, f.Name) && s.client != nil {
			now = append(now, said)
		} else {
			later = append(later, said)
		}
		if was, ok := s.inForce(f.Name); ok && was.From != fromFolder {
			out.Say("note: the node has --%s from %s, which goes before what is set here at its next start", f.Name, was.From)
		}
	}
	if len(changed) > 0 {
		if err := s.kept.save(s.dir); err != nil {
			return err
		}
	}
	if learner != "" {
		if err := keepLearner(s.dir, learner); err != nil {
			return err
		}
		later = append(later, "learner "+learner)
	}
	if len(now) > 0 {
		note, err := s.tell(ctx, changed, to)
		if err != nil {
			return fmt.Errorf("%s is saved, and goes from the next start on; the node that runs did not take it: %w", strings.Join(slices.Concat(now, later), ", "), err)
		}
		out.Answer("set: %s", strings.Join(now, ", "))
		out.Note(note)
	}
	dir := status.ShellWord(s.dir)
	switch {
	case len(later) == 0:
	case s.client == nil:
		out.Answer("set: %s; no node runs there: the next `atoll join %s` goes by it", strings.Join(later, ", "), dir)
	default:
		out.Answer("set from the next start on: %s; to start it now: `atoll leave %s`, then `atoll join %s`", strings.Join(later, ", "), dir, dir)
	}
	return nil
}

// tell has the running node take what it can take at once.
func (s *Folder) tell(ctx context.Context, changed []*kong.Flag, to node.Change) (note string, err error) {
	to.Names = namesOf(changed)
	for _, f := range s.flags {
		now, ok := s.inForce(f.Name)
		if slices.Contains(changed, f) && slices.Contains(atOnce, f.Name) {
			text, isDefault := typedAs(f)
			now, ok = status.Setting{Name: f.Name, Value: text, From: fromFolder}, !isDefault
		}
		if ok {
			to.Settings = append(to.Settings, now)
		}
	}
	return s.client.Set(ctx, to)
}

// Show writes all settings.
func (s *Folder) Show(out *cli.Console, asJSON bool) error {
	var all []status.Setting
	for _, f := range s.flags {
		now, ok := s.inForce(f.Name)
		if !ok {
			now = status.Setting{Name: f.Name, Value: defaultText(f), From: fromDefault}
		}
		next, ok := s.kept.text(f.Name)
		if !ok {
			next = defaultText(f)
		}
		if next != now.Value && (now.From == fromFolder || now.From == fromDefault) {
			now.From += "; from the next start on " + next
		}
		all = append(all, now)
	}
	learner, err := store.LoadLearner(s.dir)
	if err != nil {
		return err
	}
	all = append(all, status.Setting{Name: "learner", Value: node.BuiltinLearner, From: fromDefault})
	if learner != "" {
		all[len(all)-1] = status.Setting{Name: "learner", Value: learner, From: store.LearnerFile}
	}
	if asJSON {
		return out.JSON(all)
	}
	rows := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, setting := range all {
		rows = append(rows, []string{setting.Name, setting.Value, setting.From})
	}
	return cli.Table(out.Out, rows...)
}

// saidDefault finds in the help of a flag what it is if nobody says anything.
var saidDefault = regexp.MustCompile(`Default: ([^.]*)\.`)

// defaultText is the default of a flag, for people.
func defaultText(f *kong.Flag) string {
	said := saidDefault.FindStringSubmatch(f.Help)
	switch {
	case f.HasDefault:
		return f.Default
	case f.IsBool():
		return "false"
	case said != nil:
		return said[1]
	}
	return "none"
}

// Runs reports whether a node runs there.
func (s *Folder) Runs() bool { return s.client != nil }

// KeepTyped keeps what was typed, for starts without it. A node remembers its learner when that has started; that there is
// none any more is kept here.
func (s *Folder) KeepTyped(parsed *kong.Context, learner string) error {
	before := maps.Clone(s.kept)
	for _, f := range s.flags {
		if source(parsed, f) == fromTyped {
			s.kept.put(f)
		}
	}
	if !reflect.DeepEqual(s.kept, before) {
		if err := s.kept.save(s.dir); err != nil {
			return err
		}
	}
	if learner == node.BuiltinLearner {
		return keepLearner(s.dir, learner)
	}
	return nil
}
