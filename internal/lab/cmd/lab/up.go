package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// up runs a lab until ctx ends, which is no error.
func up(ctx context.Context) (err error) {
	program, err := findTerraform()
	if err != nil {
		return err
	}
	s, err := newDemoEnvironment(ctx)
	if s == nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	if err != nil {
		return err
	}
	if _, err := s.copyExample(defaultScenario); err != nil {
		return err
	}
	removeEnv, err := s.writeEnv()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeEnv()) }()
	fmt.Printf(`
The lab is up. In another terminal:

  source %[1]s
  kubectl -n %[2]s get pvc      # golden, data, chap
  %[3]s -chdir=%[4]s apply
  tail -F %[5]s/*.log
  virsh -c "$VIRTCLAIM_LAB_HOST_A" list --all
  virsh -c "$VIRTCLAIM_LAB_HOST_A" vol-list %[6]s

Ctrl-C stops it and removes all of it.
`, filepath.Join(s.root, ".lab", "env"), namespace, program, filepath.Join(s.Dir, "quickstart"), s.logs, pool)
	<-ctx.Done()
	fmt.Println()
	return nil
}

// writeEnv writes the shell's exports for another terminal. remove removes the file, unless another lab has replaced it.
func (s *demoEnvironment) writeEnv() (remove func() error, err error) {
	values, err := s.variables()
	if err != nil {
		return nil, err
	}
	maps.Copy(values, map[string]string{
		"KUBECONFIG":                 s.Cluster.Kubeconfig,
		"VIRTCLAIM_LAB_HOST_A":       s.Hosts["host-a"].URI,
		"VIRTCLAIM_LAB_HOST_B":       s.Hosts["host-b"].URI,
		"VIRTCLAIM_LAB_KERNEL":       s.Guest.Kernel,
		"VIRTCLAIM_LAB_INITRD":       s.Guest.Initrd,
		"VIRTCLAIM_LAB_ISCSI_PORTAL": s.Target.Portal,
	})
	var text bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&text, "export %s='%s'\n", name, strings.ReplaceAll(values[name], "'", `'\''`))
	}
	path := filepath.Join(s.root, ".lab", "env")
	complete := filepath.Join(s.Dir, "env")
	if err := os.WriteFile(complete, text.Bytes(), 0o600); err != nil {
		return nil, err
	}
	return func() error {
		now, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) || err == nil && !bytes.Equal(now, text.Bytes()) {
			return nil
		}
		return errors.Join(err, os.Remove(path))
	}, os.Rename(complete, path)
}
