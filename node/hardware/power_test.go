package hardware

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"
)

// supply is what Linux shows of one supply of power.
func supply(files fstest.MapFS, name string, values ...string) {
	for i := 0; i < len(values); i += 2 {
		files[name+"/"+values[i]] = &fstest.MapFile{Data: []byte(values[i+1] + "\n")}
	}
}

func TestBatteryOfLinux(t *testing.T) {
	for name, c := range map[string]struct {
		supplies func(files fstest.MapFS)
		want     bool
	}{
		"a desktop": {func(fstest.MapFS) {}, false},
		"plugged in": {func(f fstest.MapFS) {
			supply(f, "AC", "type", "Mains", "online", "1")
			supply(f, "BAT0", "type", "Battery", "status", "Charging")
		}, false},
		"on battery": {func(f fstest.MapFS) {
			supply(f, "AC", "type", "Mains", "online", "0")
			supply(f, "BAT0", "type", "Battery", "status", "Discharging")
		}, true},
		"one of two batteries": {func(f fstest.MapFS) {
			supply(f, "ADP1", "type", "Mains", "online", "0")
			supply(f, "BAT0", "type", "Battery", "status", "Not charging")
			supply(f, "BAT1", "type", "Battery", "status", "Discharging", "scope", "System")
		}, true},
		"a weak charger": {func(f fstest.MapFS) {
			supply(f, "BAT0", "type", "Battery", "status", "Discharging")
			supply(f, "ucsi-source-psy-1", "type", "USB", "online", "1")
		}, false},
		"a mouse": {func(f fstest.MapFS) {
			supply(f, "hidpp_battery_0", "type", "Battery", "status", "Discharging", "scope", "Device", "online", "1")
		}, false},
		"a mouse beside a laptop on battery": {func(f fstest.MapFS) {
			supply(f, "BAT0", "type", "Battery", "status", "Discharging")
			supply(f, "hidpp_battery_0", "type", "Battery", "status", "Discharging", "scope", "Device", "online", "1")
		}, true},
		"full, and unplugged a moment ago": {func(f fstest.MapFS) { supply(f, "BAT0", "type", "Battery", "status", "Full") }, false},
	} {
		files := fstest.MapFS{}
		if c.supplies(files); len(files) == 0 {
			files["."] = &fstest.MapFile{Mode: os.ModeDir}
		}
		without := name == "a desktop" || name == "a mouse"
		if got, err := batteryOf(files); got != c.want || errors.Is(err, ErrNoBattery) != without {
			t.Errorf("%s: on battery %v, %v", name, got, err)
		}
	}
	if _, err := batteryOf(os.DirFS(t.TempDir() + "/none")); !errors.Is(err, ErrPowerUnknown) {
		t.Errorf("a system that shows none: %v", err)
	}
}

func TestBatteryOfMacOS(t *testing.T) {
	for text, want := range map[string]bool{
		"Now drawing from 'Battery Power'\n -InternalBattery-0 (id=1)\t82%; discharging; 5:31 remaining present: true\n": true,
		"Now drawing from 'AC Power'\n -InternalBattery-0 (id=1)\t100%; charged; 0:00 remaining present: true\n":         false,
		"Now drawing from 'AC Power'\n": false,
	} {
		if got, err := batteryIn(text); got != want || errors.Is(err, ErrNoBattery) == strings.Contains(text, "InternalBattery") {
			t.Errorf("%q: on battery %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "No batteries", "\n'Battery Power'"} {
		if _, err := batteryIn(text); !errors.Is(err, ErrPowerUnknown) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
