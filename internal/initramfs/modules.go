package initramfs

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// maxModules limits the modules that are loaded, in bytes. Those of distributions have about 10 MiB.
const maxModules = 64 << 20

// builtinList is the file with the modules that are part of the kernel itself.
const builtinList = "modules.builtin"

var (
	// required are the modules without which no machine starts.
	required = []string{"virtio_pci", "virtio_blk", "ext4", "qemu_fw_cfg"}
	// useful are others that are loaded, as far as there are any: ext4 asks for its checksum by a name that no module depends on.
	useful = []string{
		"crc32c_generic", "virtio_net", "af_packet", "unix", "ipv6", "button", "evdev", "virtio_rng", "virtio_scsi", "sd_mod",
		"virtio_console", "virtio_balloon",
	}
	// filesystems are loaded for a mount of that type.
	filesystems = map[string][]string{
		"xfs":  {"xfs"},
		"vfat": {"vfat", "nls_cp437", "nls_ascii", "nls_iso8859_1", "nls_utf8"},
	}
)

// wanted are all modules that are looked for, but for what they depend on.
func wanted() []string {
	all := slices.Concat(required, useful, []string{"scsi_mod", "scsi_common", "net_failover"})
	for _, more := range filesystems {
		all = append(all, more...)
	}
	return all
}

// moduleName is a module's own name, which has underscores where its file's name may have dashes.
func moduleName(base string) string { return strings.ReplaceAll(base, "-", "_") }

// module is a module in the format that Linux loads.
type module struct {
	name    string
	content []byte
}

// order returns modules with all that they depend on, in the order in which they are loaded. Those that are part of the kernel are left
// out. Without isRequired, so are those that there are not.
func (k *Kernel) order(names []string, isRequired bool) (ordered []module, err error) {
	l := loader{kernel: k, seen: map[string]bool{}}
	for _, name := range names {
		if _, is := k.modules[name]; !is && !k.builtin[name] && !isRequired {
			continue
		}
		if err := l.load(name); err != nil {
			return nil, err
		}
	}
	return l.ordered, nil
}

type loader struct {
	kernel  *Kernel
	seen    map[string]bool
	ordered []module
	// unpacked is the number of bytes of all modules.
	unpacked int
}

func (l *loader) load(name string) error {
	if l.seen[name] || l.kernel.builtin[name] {
		return nil
	}
	l.seen[name] = true
	packed, ok := l.kernel.modules[name]
	if !ok && len(l.kernel.modules) == 0 {
		return fmt.Errorf("the package has the kernel %s without its modules (lib/modules/%[1]s), of which a machine needs %s. RPM "+
			"packages have them in kernel-modules-core: install both in a container image, and take that", l.kernel.Release, name)
	}
	if !ok {
		return fmt.Errorf("the kernel %s has no module %s, which a machine needs that runs a container image. Take another kernel, or a "+
			"package with all of its modules",
			l.kernel.Release, name)
	}
	content, needs, err := readModule(packed)
	if err != nil {
		return fmt.Errorf("read the kernel's module %s: %w", name, err)
	}
	if l.unpacked += len(content); l.unpacked > maxModules {
		return fmt.Errorf("%w: its modules have more than %d MiB when they are unpacked, with %s", image.ErrUntrusted, maxModules>>20, name)
	}
	for _, need := range needs {
		if err := l.load(need); err != nil {
			return fmt.Errorf("for the module %s: %w", name, err)
		}
	}
	l.ordered = append(l.ordered, module{name, content})
	return nil
}

// readModule unpacks a module, and returns the names of those that it depends on.
func readModule(packed []byte) (content []byte, needs []string, err error) {
	unpacked, err := image.Unpack(bytes.NewReader(packed))
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = unpacked.Close() }()
	if content, err = io.ReadAll(io.LimitReader(unpacked, maxModules+1)); err != nil {
		return nil, nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return nil, nil, err
	}
	section := file.Section(".modinfo")
	if section == nil {
		return nil, nil, errors.New("it has no section .modinfo")
	}
	info, err := section.Data()
	if err != nil {
		return nil, nil, err
	}
	for line := range strings.SplitSeq(string(info), "\x00") {
		if list, ok := strings.CutPrefix(line, "depends="); ok && list != "" {
			return content, strings.Split(moduleName(list), ","), nil
		}
	}
	return content, nil, nil
}
