package host

import (
	"slices"
	"strconv"
	"strings"
)

// mountTable is the kernel's table of the mounts that libvirt sees; proc(5) has its form.
const mountTable = "/proc/self/mountinfo"

// mount is a line of that table.
type mount struct {
	// device is what was mounted, as mount(8) lists it, and number that of its filesystem.
	device, number string
	options        []string
}

func (m mount) has(option string) bool { return slices.Contains(m.options, option) }

// mountsAt are the mounts at a target, the top one first.
func mountsAt(table, target string) (found []mount) {
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		dash := slices.Index(fields, "-")
		if dash < 6 || len(fields) < dash+3 || unescape(fields[4]) != target {
			continue
		}
		found = append(found, mount{device: unescape(fields[dash+2]), number: fields[2], options: strings.Split(fields[5], ",")})
	}
	slices.Reverse(found)
	return found
}

// unescape undoes the kernel's octal escapes of spaces and the like.
func unescape(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		if len(s) > 3 && s[0] == '\\' {
			if n, err := strconv.ParseUint(s[1:4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				s = s[4:]
				continue
			}
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}
