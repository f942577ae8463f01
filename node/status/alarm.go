package status

import "slices"

// alarms are the kinds of events after which a person has to look.
var alarms = []string{"state differs", "state wrong", "memory damaged", "damaged", "disk", "duplicate key", "learner lost", "given up"}

// Alarming says whether a person has to look after an event of this kind.
func Alarming(kind string) bool { return slices.Contains(alarms, kind) }
