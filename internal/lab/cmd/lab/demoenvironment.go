package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

const (
	namespace = "lab"
	lunSize   = 64 << 20

	golden        = "golden"
	goldenContent = "virtclaim golden image"
	// pool is the pool of each host in which the quickstart's disks are created.
	pool = "ssd"
)

// mirrorVariable is the environment variable that names a folder with archives of a release, which terraform init installs instead of
// what make build has built.
const mirrorVariable = "VIRTCLAIM_DEMO_MIRROR"

const mirrorConfig = `provider_installation {
  filesystem_mirror {
    path = %q
  }
}
`

const overrideConfig = `provider_installation {
  dev_overrides {
    "virtclaim/virtclaim" = %q
  }
  direct {}
}
`

// demoEnvironment is a lab with claims to use, and a built provider.
type demoEnvironment struct {
	*lab.Lab
	root string
	// luns are the logical units of the claims, by the claims' names.
	luns map[string]lab.LUN
	// logs is the folder for the output of guests' serial ports.
	logs string
	// images is what the example container-images requires.
	images *lab.ContainerImages
	// config is the path of Terraform's CLI configuration that selects the built provider.
	config string
}

func prepare(ctx context.Context) error { return lab.Prepare(ctx, say) }

// newDemoEnvironment starts a lab and adds the claims. The caller stops it, also after an error, unless the scene is nil.
func newDemoEnvironment(ctx context.Context) (*demoEnvironment, error) {
	root, err := lab.Root()
	if err != nil {
		return nil, err
	}
	l, err := lab.Start(ctx, lab.Options{Log: say})
	if err != nil {
		return nil, err
	}
	s := &demoEnvironment{Lab: l, root: root, logs: filepath.Join(l.Dir, "logs"), config: filepath.Join(l.Dir, "terraformrc")}
	if err := s.makeLogs(); err != nil {
		return s, err
	}
	if err := s.writeConfig(); err != nil {
		return s, err
	}
	return s, s.addClaims(ctx)
}

// stop ends the lab, also when ctx has ended already.
func (s *demoEnvironment) stop(ctx context.Context) error {
	say("stopping the lab")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	return s.Stop(ctx)
}

// makeLogs creates the log files of the quickstart's guests, because files that libvirt creates can be read by root only.
func (s *demoEnvironment) makeLogs() error {
	if err := os.Mkdir(s.logs, 0o700); err != nil {
		return err
	}
	for _, m := range quickstart {
		if err := os.WriteFile(s.logOf(m), nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *demoEnvironment) logOf(m machine) string { return filepath.Join(s.logs, m.name+".log") }

func (s *demoEnvironment) writeConfig() error {
	if mirror := os.Getenv(mirrorVariable); mirror != "" {
		return os.WriteFile(s.config, fmt.Appendf(nil, mirrorConfig, mirror), 0o600) //nolint:gosec // the file is in the lab's folder
	}
	bin := filepath.Join(s.root, ".lab", "bin")
	if _, err := os.Stat(filepath.Join(bin, "terraform-provider-virtclaim")); err != nil {
		return fmt.Errorf("the provider is not built: run make build (%w)", err)
	}
	return os.WriteFile(s.config, fmt.Appendf(nil, overrideConfig, bin), 0o600)
}

func (s *demoEnvironment) addClaims(ctx context.Context) error {
	s.luns = map[string]lab.LUN{}
	for name, spec := range map[string]lab.LUNSpec{
		golden: {Size: lunSize, Content: []byte(goldenContent)},
		"data": {Size: lunSize},
		"chap": {Size: lunSize, CHAP: true},
	} {
		lun, err := s.Target.AddLUN(ctx, spec)
		if err != nil {
			return err
		}
		s.luns[name] = lun
		if err := s.AddClaim(ctx, lab.ClaimSpec{Namespace: namespace, Name: name, LUN: lun}); err != nil {
			return err
		}
	}
	return nil
}

// variables are the quickstart's variables, as environment for Terraform.
func (s *demoEnvironment) variables() (map[string]string, error) {
	uris := map[string]string{}
	for name, h := range s.Hosts {
		uris[name] = h.URI
	}
	hosts, err := json.Marshal(uris)
	return map[string]string{
		"TF_CLI_CONFIG_FILE": s.config,
		"TF_VAR_hosts":       string(hosts),
		"TF_VAR_pool":        pool,
		"TF_VAR_kubeconfig":  s.Cluster.Kubeconfig,
		"TF_VAR_namespace":   namespace,
		"TF_VAR_kernel":      s.Guest.Kernel,
		"TF_VAR_initrd":      s.Guest.Initrd,
		"TF_VAR_log_dir":     s.logs,
	}, err
}

// copyExample copies an example, so that Terraform's files do not end up in the checkout.
func (s *demoEnvironment) copyExample(name string) (dir string, err error) {
	dir = filepath.Join(s.Dir, name)
	from := filepath.Join(s.root, "examples", "scenarios", name)
	if err := os.Mkdir(dir, 0o700); err != nil { //nolint:gosec // the name is one of scenarios
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(from, "*.tf"))
	if err != nil {
		return "", err
	}
	if len(files) == 0 {
		return "", errors.New("no example in " + from)
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the same
		if err != nil {
			return "", err
		}
		//nolint:gosec // Base excludes paths outside of dir
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			return "", err
		}
	}
	return dir, nil
}
