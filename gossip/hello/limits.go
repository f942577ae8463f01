package hello

// Limits on a record. Together they keep a signed record near wire.MaxRecord,
// which bounds it in any case.
const (
	// MaxAddrs bounds the addresses: a machine with a few interfaces, two
	// transports and a relay has about ten.
	MaxAddrs = 16
	// MaxAddrLen bounds an address: a relayed one with two peer ids has 150.
	MaxAddrLen = 192
	// MaxDevices bounds the kinds of devices; equal ones are counted in one.
	MaxDevices = 16
	// MaxDeviceCount bounds that count: no machine has more, and shares that
	// are shown per device stay sensible.
	MaxDeviceCount = 1 << 16
	// MaxString bounds every other string: they are shown in one column.
	MaxString = 64
	// MaxRate bounds tokens and bytes per second: above any machine, and small
	// enough that sums and products of rates stay finite.
	MaxRate = 1e15
)

// FirstAddrs is as many addresses as a record has room for.
func FirstAddrs(addrs []string) []string { return addrs[:min(len(addrs), MaxAddrs)] }
