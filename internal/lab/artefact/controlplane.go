package artefact

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// buildFlags turn optimisation off, which would take two minutes more and make
// no test faster, and debug information, which the linker would drop. What is
// left are 2,170 packages of a fifth of a second each, on all cores (of 490
// seconds: kubernetes 130, client-go 120, apiserver 45, api 35, the linker 5).
// Less garbage collection without cgo, and optimised packages shared with the
// provider's build, were each tried once and not faster.
var buildFlags = []string{"build", "-mod=readonly", "-gcflags=all=-N -l -dwarf=false"}

// ControlPlane returns the path of the program in internal/lab/controlplane,
// built from the checkout that the working directory is in. The first build on
// a machine compiles all of kube-apiserver and kubelet, which takes 4 minutes
// on two cores.
func ControlPlane(ctx context.Context, cache string, log func(format string, args ...any)) (path string, err error) {
	root, err := goTool(ctx, "", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return "", fmt.Errorf("find the checkout: %w", err)
	}
	source := filepath.Join(root, "internal", "lab", "controlplane")
	hash, err := controlPlaneHash(ctx, source)
	if err != nil {
		return "", err
	}
	const program = "controlplane"
	dir, err := folder(ctx, cache, program+"-"+hash, log, func(ctx context.Context, dir string) error {
		log("building the Kubernetes control plane (the first time takes minutes)")
		return buildControlPlane(ctx, source, filepath.Join(dir, program))
	})
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	return filepath.Join(dir, program), nil
}

// buildControlPlane builds an API server that reports its module's version.
func buildControlPlane(ctx context.Context, source, program string) error {
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
	_, err = goTool(ctx, source, append(buildFlags[:len(buildFlags):len(buildFlags)], flags, "-o", program, ".")...)
	return err
}

// controlPlaneHash hashes all inputs of the build, the modules by go.sum.
func controlPlaneHash(ctx context.Context, source string) (string, error) {
	version, err := goTool(ctx, source, "env", "GOVERSION")
	if err != nil {
		return "", fmt.Errorf("find the version of Go: %w", err)
	}
	parts := fmt.Appendf(nil, "%s %q\n", version, buildFlags)
	for _, pattern := range []string{"*.go", "go.mod", "go.sum"} {
		files, err := filepath.Glob(filepath.Join(source, pattern))
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("the control plane's source has no %s in %s", pattern, source)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("read the control plane's source: %w", err)
			}
			parts = fmt.Appendf(parts, "%s %d\n%s", filepath.Base(file), len(content), content)
		}
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
