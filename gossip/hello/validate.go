package hello

import (
	"errors"
	"fmt"
	"math"
	"unicode"
	"unicode/utf8"

	"atoll/gossip/wire"
	"github.com/multiformats/go-multiaddr"
)

// ErrInvalid is a record with a field that no honest node sends.
var ErrInvalid = errors.New("invalid capability record")

// Validate checks every field's bounds, whatever protocol the record is of:
// strings short and printable, rates finite and not negative, addresses
// multiaddrs. It also checks the words of a record of this Protocol. Its error
// is ErrInvalid and names the field.
func (r Record) Validate() error {
	checks := []error{r.checkStrings(), r.checkNumbers(), r.checkDevices(), r.checkAddrs(), r.checkWords()}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r Record) checkStrings() error {
	for _, s := range []struct{ field, value string }{
		{"role", r.Role}, {"trainer", r.Trainer}, {"precision", r.Precision}, {"agent", r.Agent}, {"name", r.Name},
	} {
		if err := checkString(s.field, s.value, MaxString); err != nil {
			return err
		}
	}
	return nil
}

func (r Record) checkNumbers() error {
	for _, n := range []struct {
		field string
		value float64
	}{
		{"tokens per second", r.TokensPerSecond},
	} {
		if math.IsNaN(n.value) || n.value < 0 || n.value > MaxRate {
			return invalid(n.field, n.value, "0..%g", MaxRate)
		}
	}
	if r.StartedMs < 0 {
		return invalid("started", r.StartedMs, "unix milliseconds")
	}
	if len(r.Certificate) > wire.MaxCertificate {
		return invalid("certificate", len(r.Certificate), "at most %d bytes", wire.MaxCertificate)
	}
	return nil
}

func (r Record) checkDevices() error {
	if len(r.Devices) > MaxDevices {
		return invalid("devices", len(r.Devices), "at most %d kinds", MaxDevices)
	}
	for _, d := range r.Devices {
		if err := checkString("device kind", d.Kind, MaxString); err != nil {
			return err
		}
		if err := checkString("device name", d.Name, MaxString); err != nil {
			return err
		}
		if d.Count < 1 || d.Count > MaxDeviceCount {
			return invalid("device count", d.Count, "1..%d", MaxDeviceCount)
		}
	}
	return nil
}

func (r Record) checkAddrs() error {
	if len(r.Addrs) > MaxAddrs {
		return invalid("addrs", len(r.Addrs), "at most %d", MaxAddrs)
	}
	for _, a := range r.Addrs {
		if err := checkString("addr", a, MaxAddrLen); err != nil {
			return err
		}
		if _, err := multiaddr.NewMultiaddr(a); err != nil {
			return invalid("addr", a, "a multiaddr such as /ip4/192.0.2.1/tcp/4001 (%v)", err)
		}
	}
	return nil
}

// checkWords checks the fields that take one of a few words. A newer protocol
// may know more of them; Negotiate then refuses by the protocol.
func (r Record) checkWords() error {
	switch {
	case r.Protocol != Protocol:
		return nil
	case r.Role == Observer:
		if r.Trainer != "" {
			return invalid("trainer", r.Trainer, "none for an observer")
		}
		return nil
	case r.Role != Learner:
		return invalid("role", r.Role, "%s or %s", Learner, Observer)
	case r.Trainer != Builtin && r.Trainer != External:
		return invalid("trainer", r.Trainer, "%s or %s", Builtin, External)
	}
	return nil
}

// checkString keeps what is shown on screens short and free of control codes.
func checkString(field, s string, limit int) error {
	if len(s) > limit {
		return invalid(field, s[:limit], "at most %d bytes, not %d", limit, len(s))
	}
	if !utf8.ValidString(s) {
		return invalid(field, s, "UTF-8")
	}
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return invalid(field, s, "printable characters")
		}
	}
	return nil
}

// invalid names the field, its value (quoted if a string) and what was
// expected of it.
func invalid(field string, value any, format string, args ...any) error {
	if s, ok := value.(string); ok {
		value = fmt.Sprintf("%q", s)
	}
	return fmt.Errorf("%w: %s %v: want %s", ErrInvalid, field, value, fmt.Sprintf(format, args...))
}
