package main

import (
	"atoll/cmd/atoll/internal/cli"
	"atoll/node/allowance"
	"atoll/node/limits"
)

// limitFlags are what the owner of a node lets it cost.
type limitFlags struct {
	Up      limits.Rate `help:"Most that the node sends, such as 5mbit. Heartbeats go before payloads. Default: what the link carries." placeholder:"RATE"`
	Down    limits.Rate `help:"Most that the node receives, such as 20mbit. Default: what the link carries." placeholder:"RATE"`
	Quota   quota       `help:"Bytes that the node may send and receive together, such as 300GB/month or 2GB/day, by the local calendar. It pauses when 98 % are used, and keeps the rest for its last deltas and heartbeats. Restarts do not reset the count. Default: no limit." placeholder:"SIZE/PERIOD"`
	Hours   string      `help:"Hours in which the node may work, by local time: 22-07, or several with weekdays, such as 'mon-fri 22-07, sat-sun'. It pauses outside of them. Default: always." placeholder:"HOURS"`
	Battery string      `help:"While the machine runs on its battery: ${enum}." enum:"go,pause" default:"go"`
}

// limits checks the flags.
func (f limitFlags) limits() (allowance.Limits, error) {
	hours, err := limits.ParseHours(f.Hours)
	if err != nil {
		return allowance.Limits{}, cli.BadUsage("--hours: %v", err)
	}
	return allowance.Limits{
		Up: int64(f.Up.BytesPerSecond()), Down: int64(f.Down.BytesPerSecond()),
		Quota: limits.Quota(f.Quota), Hours: hours, Battery: f.Battery == "pause",
	}, nil
}
