package inspect

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"atoll/node/store"
	"atoll/optimizer/trainer/external"
)

// DoctorOfLearner looks at a program that trains alone, where there is no node yet.
func DoctorOfLearner(ctx context.Context, learner string) Checkup {
	d := &doctor{ctx: ctx, learner: learner, Checkup: Checkup{OK: true}}
	d.tryLearner(learner)
	return d.Checkup
}

// builtin is what --learner says for atoll's own trainer.
const builtin = "builtin"

// command is the program that trains, "" for atoll's own trainer.
func (d *doctor) command() (command string, err error) {
	if command = strings.TrimSpace(d.learner); command == "" {
		command, err = store.LoadLearner(d.dir)
	}
	if command == builtin {
		command = ""
	}
	return command, err
}

// checkLearner says whether the program that trains is there, with its framework and device.
func (d *doctor) checkLearner() {
	command, err := d.command()
	switch {
	case err != nil:
		d.bad("learner", err.Error(), store.TroubleOf(err).Remedy(d.dir))
	case command == "":
	case d.Running && d.learner == "":
		d.good("learner", command+" is what the running node trains with")
	default:
		d.tryLearner(command)
	}
}

// learnerRemedy goes with what a program says that does not start.
const learnerRemedy = "do what its last words say, then ask again; --learner builtin trains built-in models without it"

// tryLearner starts the program as a node does, hears what it is and ends it.
func (d *doctor) tryLearner(command string) {
	if command == external.Attach {
		d.good("learner", "a training script attaches by the node's folder; what it needs is known once it runs")
		return
	}
	dir, err := os.MkdirTemp("", "atoll-doctor-")
	if err != nil {
		d.bad("learner", err.Error(), "free some space where this system keeps temporary files")
		return
	}
	defer os.RemoveAll(dir)
	run, err := external.Command(command, dir)
	if err != nil {
		d.bad("learner", err.Error(), "correct the command; `atoll join --help` lists its forms")
		return
	}
	began := time.Now()
	g, err := external.Greet(d.ctx, run, func(string) {})
	if err != nil {
		d.bad("learner", fmt.Sprintf("%s: %v", command, err), learnerRemedy)
		return
	}
	text := fmt.Sprintf("%s starts in %v: %s %s, arithmetic in %s", command, time.Since(began).Round(100*time.Millisecond), g.Name, g.Version, g.Precision)
	for _, v := range g.Devices {
		text += strings.TrimRight(fmt.Sprintf(", %d x %s %s", v.Count, v.Kind, v.Name), " ")
	}
	d.good("learner", text)
}
