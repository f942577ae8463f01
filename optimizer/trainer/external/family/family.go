// Package family has processes end together: one that this process starts, and all that it
// starts in turn.
//
//	cmd := exec.Command(...)
//	family.Prepare(cmd)
//	err := cmd.Start()
//	f, err := family.Of(cmd.Process)
//	defer f.Kill()
package family
