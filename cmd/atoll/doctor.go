package main

import (
	"context"
	"fmt"

	"atoll/node/inspect"
)

const doctorHelp = `
Checks a node's folder and this machine: is the folder whole, does the disk work and have room, does the model fit into memory, how long does a round take here and what does it ask of the link, at which addresses can peers reach the node. Each line says what was found, and what to do if something is wrong. The node may be running. Exit code 0 if all is well, 1 if not.

With --fix, a damaged index is set aside; nothing is deleted. The node then fetches the run from its peers again and keeps its key.

    atoll doctor --dir first
    atoll doctor --dir first --fix
    atoll doctor --learner "torch --device cuda"     are Python, PyTorch and the device there?
    atoll doctor --dir first --json`

// DoctorCmd is `atoll doctor`.
type DoctorCmd struct {
	dirFlag
	Fix     bool   `help:"Set a damaged index aside."`
	Learner string `help:"Program that trains, as for atoll join: are it, its framework and its device there? Without a node's folder nothing else is looked at. Default: what the node trained with before." placeholder:"CMD"`
	jsonFlag
}

// Help implements kong.HelpProvider.
func (*DoctorCmd) Help() string { return doctorHelp }

// Run looks and tells.
func (c *DoctorCmd) Run(ctx context.Context, out *console) error {
	found, err := c.look(ctx)
	if err != nil {
		return err
	}
	if c.JSON {
		err = out.json(found)
	} else {
		err = printCheckup(out, found)
	}
	if err == nil && !found.OK {
		return errSilent
	}
	return err
}

func (c *DoctorCmd) look(ctx context.Context) (inspect.Checkup, error) {
	dir, err := c.folder()
	switch {
	case err != nil && c.Learner != "" && c.Dir == "":
		return inspect.DoctorOfLearner(ctx, c.Learner), nil
	case err != nil:
		return inspect.Checkup{}, err
	}
	return inspect.Doctor(ctx, dir, c.Fix, c.Learner)
}

func printCheckup(out *console, found inspect.Checkup) error {
	rows := [][]string{{"CHECK", "", "FOUND"}}
	for _, f := range found.Findings {
		state := "ok"
		if !f.OK {
			state = "WRONG"
		}
		rows = append(rows, []string{f.Name, state, f.Text})
		if f.Remedy != "" {
			rows = append(rows, []string{"", "", "do: " + f.Remedy})
		}
	}
	if err := table(out.out, rows...); err != nil {
		return err
	}
	out.answer("%s", checkupEnd(found))
	return nil
}

// checkupEnd is the last line.
func checkupEnd(found inspect.Checkup) string {
	wrong := 0
	for _, f := range found.Findings {
		if !f.OK {
			wrong++
		}
	}
	if wrong == 0 {
		return "all is well"
	}
	return fmt.Sprintf("%s attention", plural(wrong, "thing needs", "things need"))
}
