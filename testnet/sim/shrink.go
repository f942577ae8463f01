package sim

import "slices"

// Shrink makes a scenario that fails smaller for as long as it fails by the same
// checker: fewer faults, then fewer founders, within so many trials. It returns
// the smallest and its result.
func Shrink(s Scenario, trials int) (Scenario, Result) {
	sh := shrinker{trials: trials}
	sh.best = s
	sh.result, _ = Run(s)
	if sh.result.Err == nil {
		return s, sh.result
	}
	for size := max(len(s.Faults)/2, 1); size > 0; size /= 2 {
		sh.dropFaults(size)
	}
	sh.dropFounders()
	sh.dropFaults(1)
	sh.calmEarlier()
	return sh.best, sh.result
}

type shrinker struct {
	best   Scenario
	result Result
	trials int
}

// fails takes a smaller scenario if it fails in the same way.
func (sh *shrinker) fails(s Scenario) bool {
	if sh.trials == 0 {
		return false
	}
	sh.trials--
	r, err := Run(s)
	if err != nil || r.Err == nil || r.Check != sh.result.Check {
		return false
	}
	sh.best, sh.result = s, r
	return true
}

// dropFaults leaves out so many in a row, from the last to the first.
func (sh *shrinker) dropFaults(size int) {
	for at := len(sh.best.Faults) - size; at >= 0; at -= size {
		s := sh.best
		if at+size > len(s.Faults) {
			continue
		}
		s.Faults = slices.Delete(slices.Clone(s.Faults), at, at+size)
		sh.fails(s)
	}
}

// dropFounders leaves out the last founder, again and again. Joiners move up by
// one, so that faults go on meaning the same nodes.
func (sh *shrinker) dropFounders() {
	for len(sh.best.Founders) > 1 {
		s := sh.best
		last := len(s.Founders) - 1
		s.Founders = s.Founders[:last]
		s.Faults = slices.Clone(s.Faults)
		for i := range s.Faults {
			s.Faults[i] = s.Faults[i].without(last)
		}
		if !sh.fails(s) {
			return
		}
	}
}

// without is the fault in a world in which a node was never there: nothing
// happens to it, and those after it move up.
func (f Fault) without(node int) Fault {
	switch {
	case f.Node == node:
		f.Node = -1
	case f.Node > node:
		f.Node--
	}
	f.Others = slices.DeleteFunc(slices.Clone(f.Others), func(o int) bool { return o == node })
	for i, o := range f.Others {
		if o > node {
			f.Others[i] = o - 1
		}
	}
	return f
}

// calmEarlier ends the faults right after the last one.
func (sh *shrinker) calmEarlier() {
	s := sh.best
	if len(s.Faults) > 0 && s.CalmMs > 0 {
		s.CalmMs = slices.MaxFunc(s.Faults, func(a, b Fault) int { return int(a.At - b.At) }).At + 1
		sh.fails(s)
	}
}
