package cli

// JSONFlag is of commands that report one thing.
type JSONFlag struct {
	JSON bool `name:"json" help:"Answer with one JSON object."`
}

// LinesFlag is of commands that report several.
type LinesFlag struct {
	JSON bool `name:"json" help:"Answer with one JSON object per line."`
}

// ThreadsFlag is of commands that compute.
type ThreadsFlag struct {
	Threads int `help:"Threads to compute with. Default: one per core." placeholder:"N"`
}

// Check refuses a number of threads that is none.
func (f ThreadsFlag) Check() error {
	return CheckWhole("--threads", f.Threads, 0, "for one per core")
}
