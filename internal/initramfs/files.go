package initramfs

import (
	"fmt"
	"io"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// The limits of what is kept of an archive, in bytes.
const (
	maxFile = 128 << 20
	maxKept = 256 << 20
	// entryCost is about what a file takes in memory beside its content.
	entryCost = 1 << 10
)

// files are the kernels and modules that were found, by their paths without usr/, which distributions have or have not.
type files struct {
	content map[string][]byte
	// hidden are paths that a layer removes from those below, a folder's content with a slash at its end.
	hidden []string
	kept   int
	// below are those of the layers below, sought the targets of hard links, which are kept whatever they are, and misses is whether one
	// was passed by.
	below  map[string][]byte
	sought map[string]bool
	misses bool
}

var (
	kernelPath = regexp.MustCompile(`^(?:boot/|lib/modules/[^/]+/)?(?:vmlinu[xz]|Image|kernel)(?:-([^/]+))?$`)
	modulePath = regexp.MustCompile(`^lib/modules/([^/]+)/(?:kernel/(.+)/)?([^/]+)\.ko(?:\.gz|\.xz|\.zst)?$`)
)

// moduleFolders have the modules of folders and, below, what those depend on.
var moduleFolders = []string{
	"lib", "crypto", "arch", "block", "net/core",
	"fs", "fs/ext4", "fs/jbd2", "fs/xfs", "fs/fat", "fs/nls",
	"drivers/virtio", "drivers/firmware", "drivers/char/hw_random",
}

// isWanted reports whether a path may be a kernel, or one of its modules that a machine may need.
func isWanted(name string) bool {
	name = withoutUsr(name)
	if kernelPath.MatchString(name) || path.Base(name) == builtinList {
		return true
	}
	is := modulePath.FindStringSubmatch(name)
	if is == nil {
		return false
	}
	return slices.Contains(wanted(), moduleName(is[3])) || slices.ContainsFunc(moduleFolders, func(folder string) bool {
		return is[2] == folder || strings.HasPrefix(is[2], folder+"/") && folder != "fs"
	})
}

// withoutUsr is a path as an archive has it, perhaps with ./ or / before it.
func withoutUsr(name string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path.Clean(name), "/"), "usr/")
}

func (f *files) keep(name string, r io.Reader) error {
	content, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %q: %w", name, err)
	}
	f.content[name] = content
	f.kept += entryCost
	return f.count(name, len(content))
}

func (f *files) count(name string, bytes int) error {
	if f.kept += bytes; bytes > maxFile || f.kept > maxKept {
		return fmt.Errorf("%w: it has more than a kernel and its modules have: %.300q ends after %d bytes", image.ErrUntrusted, name,
			f.kept)
	}
	return nil
}

// link keeps another name of a file, whose content may be that of a layer below.
func (f *files) link(name, target string) {
	f.kept += entryCost
	content, ok := f.content[target]
	if !ok {
		content, ok = f.below[target]
	}
	if !ok {
		f.sought[target], f.misses = true, true
		f.kept += len(target)
		return
	}
	f.content[name] = content
}

// isWhiteout reports whether an entry removes files of the layers below, and keeps their path
// (https://github.com/opencontainers/image-spec/blob/main/layer.md#whiteouts).
func (f *files) isWhiteout(name string) bool {
	folder, base := path.Split(name)
	removed, is := strings.CutPrefix(base, ".wh.")
	if base == ".wh..wh..opq" {
		removed = ""
	}
	if is {
		f.hidden = append(f.hidden, folder+removed)
		f.kept += len(folder + removed)
	}
	return is
}

// put adds the files of the next layer.
func (f *files) put(above files) {
	for _, hidden := range above.hidden {
		maps.DeleteFunc(f.content, func(kept string, _ []byte) bool {
			return hidden == "" || kept == hidden || strings.HasPrefix(kept, strings.TrimSuffix(hidden, "/")+"/")
		})
	}
	maps.Copy(f.content, above.content)
	f.kept = above.kept // also what is hidden was read
	f.misses = f.misses || above.misses
}

// kernel is the one kernel among the files, with its modules.
func (f *files) kernel() (*Kernel, error) {
	releases := map[string]bool{}
	for name := range f.content {
		if is := modulePath.FindStringSubmatch(name); is != nil {
			releases[is[1]] = true
		}
	}
	found, err := f.image(slices.Sorted(maps.Keys(releases)))
	if err != nil {
		return nil, err
	}
	k := &Kernel{Image: f.content[found.path], Release: found.release, modules: map[string][]byte{}, builtin: map[string]bool{}}
	if k.Architecture, err = ArchitectureOf(k.Image); err != nil {
		return nil, fmt.Errorf("%s: %w", found.path, err)
	}
	for name, content := range f.content {
		if is := modulePath.FindStringSubmatch(name); is != nil && is[1] == k.Release {
			k.modules[moduleName(is[3])] = content
		}
	}
	for line := range strings.Lines(string(f.content["lib/modules/"+k.Release+"/"+builtinList])) {
		k.builtin[moduleName(strings.TrimSuffix(path.Base(strings.TrimSpace(line)), ".ko"))] = true
	}
	return k, nil
}

// bootFile is a kernel's path, and the release of its modules; empty without modules.
type bootFile struct{ path, release string }

// image is the kernel to boot: the only one, or the only one with modules.
func (f *files) image(releases []string) (bootFile, error) {
	var all []bootFile
	var names []string
	for _, name := range slices.Sorted(maps.Keys(f.content)) {
		is := kernelPath.FindStringSubmatch(name)
		if is == nil {
			continue
		}
		names = append(names, name)
		release := is[1]
		if folder, ok := strings.CutPrefix(path.Dir(name), "lib/modules/"); ok {
			release = folder
		}
		if len(releases) == 1 && isFlavor(release) {
			release = releases[0]
		}
		// some have it in boot and beside the modules
		if !slices.ContainsFunc(all, func(other bootFile) bool { return other.release == release }) {
			all = append(all, bootFile{name, release})
		}
	}
	if len(all) > 1 {
		all = slices.DeleteFunc(all, func(k bootFile) bool { return !slices.Contains(releases, k.release) })
	}
	if len(all) == 1 && (len(releases) == 0 || slices.Contains(releases, all[0].release)) {
		return all[0], nil
	}
	what := "there is no kernel in it"
	if len(names) > 0 {
		what = fmt.Sprintf("it has the kernels %.150s", fmt.Sprintf("%q", names))
	}
	return bootFile{}, fmt.Errorf("%w: %s, and %.150s as folders of modules. It should have one boot/vmlinuz-<release>, or "+
		"lib/modules/<release>/vmlinuz, and lib/modules/<release>", image.ErrUntrusted, what, fmt.Sprintf("%q", releases))
}

// isFlavor reports whether what a kernel is named by is no release: Alpine has boot/vmlinuz-virt beside lib/modules/6.12.1-0-virt.
func isFlavor(name string) bool { return name == "" || name[0] < '0' || name[0] > '9' }
