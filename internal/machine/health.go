package machine

import (
	"cmp"
	"context"
	"fmt"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/content"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// Health is the state of a machine on a host beyond definition and power state.
type Health struct {
	host.State
	IsPersistent bool
	// Halted describes the disk, and its storage, that an I/O error has halted; empty without one.
	Halted string
}

// Health is that of a domain as it was observed.
func (m Manager) Health(ctx context.Context, uuid string, at Observation) (is Health, err error) {
	is.State = at.state
	if !is.Active {
		return is, nil
	}
	if is.IsPersistent, err = m.host.IsPersistent(ctx, uuid); err != nil || is.Responsive {
		return is, err
	}
	if is.Halted, err = m.halted(ctx, uuid, at.live); err != nil { // a QEMU that does not answer is no reason to fail
		m.log.Warn(ctx, "Which disk has halted the machine is not known", map[string]any{"domain": uuid, "error": err.Error()})
	}
	return is, nil
}

// halted returns the disk that an I/O error has halted, under its key in the configuration.
func (m Manager) halted(ctx context.Context, uuid string, live *domainxml.Domain) (string, error) {
	target, noSpace, err := m.host.DiskError(ctx, uuid)
	if err != nil || target == "" {
		return "", err
	}
	what := "has an I/O error"
	if noSpace {
		what = "has no space left"
	}
	for _, d := range live.Attached() {
		if d.Target == target && len(d.Volume.Images) > 0 {
			return fmt.Sprintf("Disk %s (%s on %s) %s. ", d.Key, target, d.Volume.Images[0].Name, what), nil
		}
	}
	return fmt.Sprintf("Disk %s %s. ", target, what), nil
}

// persist defines a transient domain with the definition that it was started with, which libvirt still has. Its guest keeps running.
func (m Manager) persist(ctx context.Context, uuid string, at Observation) error {
	if at.live == nil {
		return nil
	}
	is, err := m.host.IsPersistent(ctx, uuid)
	if err != nil || is {
		return err
	}
	text, err := m.host.StoredXML(ctx, uuid)
	if err == nil {
		_, err = m.host.Define(ctx, text)
	}
	return err
}

// addProgram adds to a machine that is off how its program has ended, which the init writes to the root disk. The guest may have written
// anything there, or nothing: without an exit code there is none in the state.
func (m Manager) addProgram(ctx context.Context, is *domainxml.Machine) {
	config, err := guestinit.Decode([]byte(is.Run))
	if err != nil {
		return
	}
	for _, d := range is.Disks {
		if cmp.Or(d.Serial, d.DefaultSerial) != config.Root || len(d.Volume.Images) == 0 || d.Volume.Images[0].Type != "file" {
			continue
		}
		status, err := m.programStatus(ctx, d.Volume.Images[0].Name, d.Volume.Images[0].Format)
		if err != nil {
			m.log.Warn(ctx, "How a program has ended is not known", map[string]any{"machine": is.Name, "error": err.Error()})
		}
		switch status.State {
		case guestinit.Exited:
			is.ExitCode, is.HasEnded, is.Output = &status.ExitCode, status.Ended, status.Output
		case guestinit.Failed:
			is.RunError = status.Message
		case guestinit.Running: // the power was cut
		}
	}
}

func (m Manager) programStatus(ctx context.Context, path, format string) (status guestinit.Status, err error) {
	v, err := m.host.VolumeAt(ctx, path)
	if err != nil {
		return status, err
	}
	at := content.VolumeReader{Context: ctx, Host: m.host, Pool: v.Pool, Name: v.Name}
	beginning, err := image.Beginning(format, at, guestinit.StatusSize)
	status, _ = guestinit.ParseStatus(beginning)
	return status, err
}
