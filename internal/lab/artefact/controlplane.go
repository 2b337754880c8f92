package artefact

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// buildFlags turn optimisation off, which would take two minutes more and make
// no test faster, and debug information, which the linker would drop. What is
// left of the control plane are 2,174 packages of a fifth of a second each, on
// all cores, and none that only kubelet needs, which has 303 more. Less garbage
// collection without cgo, and optimised packages shared with the provider's
// build, were each tried once and not faster.
var buildFlags = []string{"build", "-mod=readonly", "-gcflags=all=-N -l -dwarf=false"}

// ControlPlane returns the path of the program in internal/lab/controlplane,
// built from the checkout that the working directory is in. The first build on
// a machine compiles all of kube-apiserver, which takes 4 minutes on two cores.
func ControlPlane(ctx context.Context, cache string, log func(format string, args ...any)) (path string, err error) {
	return kubernetesProgram(ctx, cache, "controlplane", ".", log)
}

// Kubelet returns the path of the control plane's kubelet. Its first build takes
// a minute after that of the control plane, with which it has five packages of
// six in common.
func Kubelet(ctx context.Context, cache string, log func(format string, args ...any)) (path string, err error) {
	return kubernetesProgram(ctx, cache, "kubelet", "./kubelet", log)
}

// CSIDriver returns the path of a CSI driver for the control plane's kubelet.
func CSIDriver(ctx context.Context, cache string, log func(format string, args ...any)) (path string, err error) {
	return kubernetesProgram(ctx, cache, "csi", "./csi", log)
}

// kubernetesProgram builds a package of the control plane's module.
func kubernetesProgram(ctx context.Context, cache, name, pkg string, log func(string, ...any)) (path string, err error) {
	root, err := goTool(ctx, "", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	source := filepath.Join(root, "internal", "lab", "controlplane")
	hash, err := moduleHash(ctx, source)
	if err != nil {
		return "", err
	}
	dir, err := folder(ctx, cache, name+"-"+hash, log, func(ctx context.Context, dir string) error {
		log("building the lab's %s (the first time takes minutes)", name)
		return buildKubernetes(ctx, source, pkg, filepath.Join(dir, name))
	})
	if err != nil {
		return "", fmt.Errorf("build the lab's %s: %w", name, err)
	}
	return filepath.Join(dir, name), nil
}

// buildKubernetes builds a program that reports the version of its module
// k8s.io/kubernetes.
func buildKubernetes(ctx context.Context, source, pkg, program string) error {
	version, err := goTool(ctx, source, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return fmt.Errorf("find the version of Kubernetes: %w", err)
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return fmt.Errorf("the version of Kubernetes, %q, is not like v1.2.3", version)
	}
	const variable = " -X k8s.io/component-base/version."
	flags := "-ldflags=-s -w" +
		variable + "gitVersion=" + version + variable + "gitMajor=" + parts[0] + variable + "gitMinor=" + parts[1]
	_, err = goTool(ctx, source, append(buildFlags[:len(buildFlags):len(buildFlags)], flags, "-o", program, pkg)...)
	return err
}

// moduleHash hashes all inputs of a build in a module: its files, which name
// other modules in go.sum, Go and the flags.
func moduleHash(ctx context.Context, source string) (string, error) {
	version, err := goTool(ctx, source, "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}
	parts := fmt.Appendf(nil, "%s %q\n", version, buildFlags)
	files := os.DirFS(source)
	err = fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, path)
		parts = fmt.Appendf(parts, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read the control plane's source: %w", err)
	}
	return shortHash(parts), nil
}

// goTool runs the go command in dir and returns its output without the newline.
func goTool(ctx context.Context, dir string, args ...string) (string, error) {
	text, err := output(ctx, dir, "go", args...)
	return strings.TrimSpace(string(text)), err
}

// shortHash is long enough to distinguish builds in the name of a folder.
func shortHash(content []byte) string {
	sum := sha256.Sum256(content)
	return fmt.Sprintf("%x", sum[:8])
}
