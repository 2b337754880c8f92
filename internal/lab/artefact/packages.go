package artefact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
)

// system is a distribution's kernel and BusyBox, unpacked.
type system struct {
	vmlinuz string // the compressed kernel
	modules string // the folder of this kernel's modules
	busybox string
}

// kernelMetas depend on the current kernel of Debian and of Ubuntu. Debian's
// other kernel, the one for clouds, has no AHCI driver.
var kernelMetas = []string{"linux-image-amd64", "linux-image-generic"}

// kernelDependency matches, in apt-cache's list, a package with one version of
// the kernel, or of its modules if these have their own package.
var kernelDependency = regexp.MustCompile(`(?m)^ *(?:Pre)?Depends: (linux-(?:image|modules)-\d\S*)$`)

// unpackSystem downloads the packages and unpacks them below dir.
func unpackSystem(ctx context.Context, dir string, log func(string, ...any)) (system, error) {
	root, err := unpack(ctx, dir, "a kernel and BusyBox", log, func(ctx context.Context) ([]string, error) {
		kernel, err := kernelPackages(ctx, dir)
		return append(kernel, "busybox-static"), err
	})
	if err != nil {
		return system{}, err
	}
	return findSystem(root)
}

// unpack downloads packages and unpacks them into a folder below dir, which it
// returns.
func unpack(
	ctx context.Context, dir, what string, log func(string, ...any), names func(context.Context) ([]string, error),
) (root string, err error) {
	debs, err := fetch(ctx, dir, what, log, names)
	if err != nil {
		return "", err
	}
	log("unpacking %s", what)
	root = filepath.Join(dir, "root")
	for _, deb := range debs {
		if _, err := output(ctx, dir, "dpkg", "-x", deb, root); err != nil {
			return "", err
		}
	}
	return root, nil
}

// fetch downloads packages into dir and returns their paths. It asks for their
// names again after an update of the lists of packages.
func fetch(
	ctx context.Context, dir, what string, log func(string, ...any), names func(context.Context) ([]string, error),
) ([]string, error) {
	log("downloading %s", what)
	debs, err := download(ctx, dir, names)
	if err == nil || ctx.Err() != nil {
		return debs, err
	}
	log("downloading the lists of packages first, because: %v", err)
	if _, err := output(ctx, dir, "apt-get", "-o", "Acquire::Retries=3", "update"); err != nil {
		return nil, err
	}
	return download(ctx, dir, names)
}

// dependency matches, in apt-cache's list, a package that another one depends
// on. Names in angle brackets are only provided by packages.
var dependency = regexp.MustCompile(`(?m)^ *\|?(?:Pre)?Depends: ([a-z0-9][a-z0-9.+-]*)$`)

// Dependencies are packages with those that they depend on, and what these
// depend on, as far as follow has them.
func Dependencies(ctx context.Context, names []string, follow func(name string) bool) ([]string, error) {
	all := map[string]bool{}
	for len(names) > 0 {
		for _, name := range names {
			all[name] = true
		}
		list, err := output(ctx, "", "apt-cache", append([]string{"depends", "--important"}, names...)...)
		if err != nil {
			return nil, err
		}
		names = nil
		for _, found := range dependency.FindAllSubmatch(list, -1) {
			if name := string(found[1]); !all[name] && follow(name) {
				names = append(names, name)
			}
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// Download downloads packages into a folder, unless it has them, and returns
// the new ones.
func Download(ctx context.Context, dir string, names []string) (debs []string, err error) {
	missing := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		found, _ := filepath.Glob(filepath.Join(dir, name+"_*.deb")) // no name is a wrong pattern
		return len(found) > 0
	})
	before, err := filepath.Glob(filepath.Join(dir, "*.deb"))
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	debs, err = download(ctx, dir, func(context.Context) ([]string, error) { return missing, nil })
	return slices.DeleteFunc(debs, func(deb string) bool { return slices.Contains(before, deb) }), err
}

// download downloads packages into dir and returns their paths.
func download(ctx context.Context, dir string, names func(context.Context) ([]string, error)) ([]string, error) {
	packages, err := names(ctx)
	if err != nil {
		return nil, err
	}
	args := append([]string{"-o", "Acquire::Retries=3", "download"}, packages...)
	if _, err := output(ctx, dir, "apt-get", args...); err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(dir, "*.deb"))
}

// kernelPackages returns the packages of the first meta package that the
// distribution has.
func kernelPackages(ctx context.Context, dir string) ([]string, error) {
	var unknown []error
	for _, meta := range kernelMetas {
		packages, err := kernelDependencies(ctx, dir, meta)
		if err != nil {
			unknown = append(unknown, err)
			continue
		}
		modules, err := kernelDependencies(ctx, dir, packages[0])
		if errors.Is(err, errNoKernel) {
			return packages, nil // Debian's kernel package includes its modules
		}
		return append(packages, modules...), err
	}
	return nil, errors.Join(unknown...)
}

var errNoKernel = errors.New("it depends on no kernel")

// kernelDependencies returns at least one package, or an error.
func kernelDependencies(ctx context.Context, dir, name string) ([]string, error) {
	list, err := output(ctx, dir, "apt-cache", "depends", "--important", name)
	if err != nil {
		return nil, err
	}
	packages := parseKernelDependencies(list)
	if len(packages) == 0 {
		return nil, fmt.Errorf("package %s: %w", name, errNoKernel)
	}
	return packages, nil
}

func parseKernelDependencies(list []byte) []string {
	matches := kernelDependency.FindAllSubmatch(list, -1)
	packages := make([]string, 0, len(matches))
	for _, match := range matches {
		packages = append(packages, string(match[1]))
	}
	return packages
}

// findSystem supports both layouts, before and after the merge of /lib into
// /usr.
func findSystem(root string) (found system, err error) {
	if found.vmlinuz, err = findFile(root, "boot/vmlinuz-*"); err != nil {
		return system{}, err
	}
	if found.modules, err = findFile(root, "lib/modules/*", "usr/lib/modules/*"); err != nil {
		return system{}, err
	}
	found.busybox, err = findFile(root, "bin/busybox", "usr/bin/busybox")
	return found, err
}

func findFile(root string, patterns ...string) (string, error) {
	for _, pattern := range patterns {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return "", err
		}
		if len(paths) > 0 {
			return paths[0], nil
		}
	}
	return "", fmt.Errorf("the packages have none of the files %q", patterns)
}
