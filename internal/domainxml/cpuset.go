package domainxml

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// mostCPUs excludes typing errors in the numbers of a host's processors.
const mostCPUs = 4096

// CPUs are the numbers of processors in libvirt's notation, such as 0-3,^2,8.
func CPUs(text string) (map[uint]bool, error) {
	all := map[uint]bool{}
	for part := range strings.SplitSeq(text, ",") {
		part, excluded := strings.CutPrefix(strings.TrimSpace(part), "^")
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 16)
		last, err2 := strconv.ParseUint(to, 10, 16)
		if err != nil || err2 != nil || last < first || last >= mostCPUs {
			return nil, fmt.Errorf("%q is no list of processors, such as 0-3,8", text)
		}
		for n := uint(first); n <= uint(last); n++ {
			if all[n] = true; excluded {
				delete(all, n)
			}
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%q has no processor", text)
	}
	return all, nil
}

// SameCPUs reports whether two lists have the same processors.
func SameCPUs(a, b string) bool {
	one, err := CPUs(a)
	other, err2 := CPUs(b)
	return a == b || err == nil && err2 == nil && maps.Equal(one, other)
}

// PinsToSet are the processors of a running domain that want pins elsewhere. Those that it does not pin any more are free at the next
// start.
func (d *Domain) PinsToSet(want Machine) map[uint]string {
	now, changed := cpuOf(d.xml, d.metadata).Pins, map[uint]string{}
	count, _ := vcpusOf(d.xml)
	for n, pin := range want.CPU.Pins {
		if n < count && !SameCPUs(now[n], pin) {
			changed[n] = pin
		}
	}
	return changed
}
