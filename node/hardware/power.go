package hardware

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"runtime"
	"strings"
	"time"
)

// ErrPowerUnknown says that this system does not tell where its power comes from.
var ErrPowerUnknown = errors.New("this system does not say whether it runs on its battery")

// ErrNoBattery says that this machine has none.
var ErrNoBattery = errors.New("this machine has no battery")

// pmsetWithin is how long pmset may take, which answers in some milliseconds.
const pmsetWithin = 5 * time.Second

// OnBattery reports whether this machine runs on its battery, or ErrNoBattery.
func OnBattery(ctx context.Context) (bool, error) {
	switch runtime.GOOS {
	case "linux":
		return batteryOf(os.DirFS("/sys/class/power_supply"))
	case "darwin":
		ctx, cancel := context.WithTimeout(ctx, pmsetWithin)
		defer cancel()
		text, err := exec.CommandContext(ctx, "pmset", "-g", "batt").Output()
		if err != nil {
			return false, errors.Join(ErrPowerUnknown, err)
		}
		return batteryIn(string(text))
	}
	return systemPower()
}

// batteryOf reads what Linux shows of power supplies. The machine runs on its battery if one
// discharges and nothing else gives power. Batteries of mice and the like do not count.
func batteryOf(supplies fs.FS) (bool, error) {
	names, err := fs.ReadDir(supplies, ".")
	if err != nil {
		return false, errors.Join(ErrPowerUnknown, err)
	}
	discharges, charger, err := false, false, ErrNoBattery
	for _, name := range names {
		says := func(what string) string {
			b, _ := fs.ReadFile(supplies, path.Join(name.Name(), what)) // not every supply has every file
			return strings.TrimSpace(string(b))
		}
		switch {
		case says("scope") == "Device":
		case says("type") == "Battery":
			err = nil
			discharges = discharges || says("status") == "Discharging"
		case says("online") == "1":
			charger = true
		}
	}
	return discharges && !charger, err
}

// batteryIn reads the answer of pmset, which begins with the source of power.
func batteryIn(pmset string) (bool, error) {
	switch first, _, _ := strings.Cut(pmset, "\n"); {
	case strings.Contains(first, "'Battery Power'"):
		return true, nil
	case strings.Contains(first, "'UPS Power'"), strings.Contains(first, "'AC Power'") && strings.Contains(pmset, "InternalBattery"):
		return false, nil
	case strings.Contains(first, "'AC Power'"):
		return false, ErrNoBattery
	}
	return false, ErrPowerUnknown
}
