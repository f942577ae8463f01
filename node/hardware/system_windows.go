package hardware

import (
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

var kernel32 = windows.NewLazySystemDLL("kernel32.dll")

// ask calls a function of kernel32, which is of no package; ok says that it answered.
func ask(name string, args ...uintptr) (ok bool) {
	function := kernel32.NewProc(name)
	if function.Find() != nil {
		return false
	}
	result, _, _ := function.Call(args...)
	return result != 0
}

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length, load  uint32
	total, free   uint64
	_, _, _, _, _ uint64
}

// MemoryBytes is the memory of this machine, 0 if the system does not say.
func MemoryBytes() uint64 {
	s := memoryStatus{length: uint32(unsafe.Sizeof(memoryStatus{}))}
	if !ask("GlobalMemoryStatusEx", uintptr(unsafe.Pointer(&s))) {
		return 0
	}
	return s.total
}

// memoryCounters is PROCESS_MEMORY_COUNTERS.
type memoryCounters struct {
	size, faults     uint32
	peak, now        uintptr
	_, _, _, _, _, _ uintptr
}

func memoryOfProcess() (c memoryCounters) {
	c.size = uint32(unsafe.Sizeof(c))
	if !ask("K32GetProcessMemoryInfo", uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&c)), uintptr(c.size)) {
		return memoryCounters{}
	}
	return c
}

// RSSBytes is the memory that this process occupies, 0 if the system does not say.
func RSSBytes() uint64 { return uint64(memoryOfProcess().now) }

// PeakRSSBytes is the most memory that this process has occupied, 0 if the system does not
// say.
func PeakRSSBytes() uint64 { return uint64(memoryOfProcess().peak) }

// OpenFiles is how many handles this process has open, 0 if the system does not say.
func OpenFiles() int {
	var n uint32
	if !ask("GetProcessHandleCount", uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&n))) {
		return 0
	}
	return int(n)
}

// tick is the unit of Windows' times of a process.
const tick = 100 * time.Nanosecond

// ProcessorTime is how long the processors have worked for this process, as a
// clock that began at the epoch.
func ProcessorTime() time.Time {
	var began, ended, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &began, &ended, &kernel, &user); err != nil {
		return time.Now() // a system without the figure: the wall clock is the next best
	}
	return time.Unix(0, (ticks(kernel)+ticks(user))*int64(tick))
}

func ticks(t windows.Filetime) int64 { return int64(t.HighDateTime)<<32 | int64(t.LowDateTime) }

// powerStatus is SYSTEM_POWER_STATUS.
type powerStatus struct {
	line, battery, percent, saver byte
	_, _                          uint32 // seconds of the battery
}

// What line says; 255 is unknown.
const (
	lineOff = 0
	lineOn  = 1

	noBattery = 128 // of battery
)

func systemPower() (onBattery bool, err error) {
	var s powerStatus
	if !ask("GetSystemPowerStatus", uintptr(unsafe.Pointer(&s))) || s.line > lineOn {
		return false, ErrPowerUnknown
	}
	if s.battery == noBattery {
		return false, ErrNoBattery
	}
	return s.line == lineOff, nil
}
