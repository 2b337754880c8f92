package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// serveTime is the timeout for a machine without KVM to boot and to serve, as a database that is made meanwhile.
var serveTime = Patience(3 * time.Minute)

// containerImagesData is the size of the claim of the example container-images, in bytes.
const containerImagesData = 512 << 20

// ContainerImages is what the example container-images requires.
type ContainerImages struct {
	// Variables are the example's, as environment for Terraform.
	Variables map[string]string

	lab           *Lab
	files         Applications
	claim         ClaimSpec
	web, database netip.Addr
}

// AddContainerImages prepares the lab for the example. Its machines log into the folder dir, which has the image
// for the data disk, too.
func (l *Lab) AddContainerImages(ctx context.Context, dir string) (s *ContainerImages, err error) {
	s = &ContainerImages{lab: l}
	if s.files, err = l.Applications(ctx); err != nil {
		return nil, err
	}
	hosts, err := l.LANHosts(ctx)
	if err != nil {
		return nil, err
	}
	s.web, s.database = hosts[0].GuestAddress.Addr(), hosts[1].GuestAddress.Addr()
	for _, name := range []string{"web", "database"} { // files that libvirt creates can be read by root only
		if err := os.WriteFile(filepath.Join(dir, name+".log"), nil, 0o600); err != nil {
			return nil, err
		}
	}
	if err := s.addClaim(ctx, hosts[1].Portal); err != nil {
		return nil, err
	}
	return s, s.setVariables(hosts, dir)
}

// addClaim adds a blank claim, whose storage the host reaches at its portal.
func (s *ContainerImages) addClaim(ctx context.Context, portal string) (err error) {
	s.claim = ClaimSpec{Namespace: "container-images", Name: "data"}
	if s.claim.LUN, err = s.lab.Target.AddLUN(ctx, LUNSpec{Size: containerImagesData}); err != nil {
		return err
	}
	s.claim.Source = &corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: portal, IQN: s.claim.LUN.IQN, Lun: int32(s.claim.LUN.Number),
	}}
	return s.lab.AddClaim(ctx, s.claim)
}

func (s *ContainerImages) setVariables(hosts [2]*LANHost, dir string) error {
	s.Variables = map[string]string{
		"TF_VAR_kernel_image": s.files.Kernel.Reference, "TF_VAR_kubeconfig": s.lab.Cluster.Kubeconfig,
		"TF_VAR_namespace": s.claim.Namespace, "TF_VAR_claim": s.claim.Name, "TF_VAR_log_dir": dir, "TF_VAR_domain_type": "qemu",
		// Without KVM, a kernel that leaves these out boots in half of the time.
		"TF_VAR_kernel_cmdline": "console=ttyS0 quiet panic=-1 no_timer_check cryptomgr.notests rodata=off",
	}
	of := map[string]map[string]string{}
	for n, key := range []string{"host-a", "host-b"} {
		of[key] = map[string]string{"uri": hosts[n].URI, "bridge": Bridge}
	}
	var all []error
	for name, value := range map[string]any{
		"hosts": of, "images": map[string]string{"web": s.files.Web.Reference, "database": s.files.Database.Reference},
		"addresses": map[string]string{"web": hosts[0].GuestAddress.String(), "database": hosts[1].GuestAddress.String()},
	} {
		text, err := json.Marshal(value)
		s.Variables["TF_VAR_"+name] = string(text)
		all = append(all, err)
	}
	return errors.Join(all...)
}

// Remove removes the claim and its storage.
func (s *ContainerImages) Remove(ctx context.Context) error {
	return errors.Join(s.lab.RemoveClaim(ctx, s.claim), s.lab.Target.RemoveLUN(ctx, s.claim.LUN))
}

// Page is what the web server answers with, once it does.
func (s *ContainerImages) Page(ctx context.Context) (page string, err error) {
	return whenServed(ctx, func(ctx context.Context) (string, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.web.String()+"/", http.NoBody)
		if err != nil {
			return "", err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return "", err
		}
		defer func() { _ = response.Body.Close() }()
		content, err := io.ReadAll(response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("it answers with status %s", response.Status)
		}
		return string(content), err
	})
}

// Query has the database run statements in one transaction, once it answers, and returns their output.
func (s *ContainerImages) Query(ctx context.Context, statements string) (string, error) {
	psql, err := s.files.Files.PSQL()
	if err != nil {
		return "", err
	}
	psql = append(psql, "--host", s.database.String(), "--username=postgres", "--no-psqlrc", "--tuples-only", "--no-align", "--quiet",
		"--set=ON_ERROR_STOP=1",
		"--command", statements)
	return whenServed(ctx, func(ctx context.Context) (string, error) {
		out, err := exec.CommandContext(ctx, psql[0], psql[1:]...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return strings.TrimSpace(string(out)), err
	})
}

// whenServed asks again until there is an answer.
func whenServed(ctx context.Context, ask func(context.Context) (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, serveTime)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		once, end := context.WithTimeout(ctx, 10*time.Second)
		answer, err := ask(once)
		end()
		if err == nil {
			return answer, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", fmt.Errorf("no answer after %s: %w", serveTime, err)
		}
	}
}
