//go:build !linux

package testnet

import "errors"

var errNotLinux = errors.New("kill learner needs Linux, where the processes of a learner can be found")

// relatives needs what only Linux shows: the environment of processes.
func relatives(string) ([]relative, error) { return nil, errNotLinux }

// killProcess has nothing to kill where relatives finds nothing.
func killProcess(int) error { return errNotLinux }
