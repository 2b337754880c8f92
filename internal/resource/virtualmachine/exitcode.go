package virtualmachine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// addProgram adds to a machine that is off how its program has ended, which the init writes to the root disk. The guest may have written anything
// there, or nothing: without an exit code there is none in the state.
func (m manager) addProgram(ctx context.Context, is *domainxml.Machine) {
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
			tflog.Warn(ctx, "How a program has ended is not known", map[string]any{"machine": is.Name, "error": err.Error()})
		}
		switch status.State {
		case guestinit.Exited:
			is.ExitCode = &status.ExitCode
		case guestinit.Failed:
			is.RunError = status.Message
		case guestinit.Running: // the power was cut
		}
	}
}

func (m manager) programStatus(ctx context.Context, path, format string) (status guestinit.Status, err error) {
	v, err := m.host.VolumeAt(ctx, path)
	if err != nil {
		return status, err
	}
	sector, err := image.FirstSector(format, volumeReader{ctx, m.host, v})
	status, _ = guestinit.ParseStatus(sector)
	return status, err
}

// volumeReader reads a volume's file.
type volumeReader struct {
	ctx  context.Context //nolint:containedctx // io.ReaderAt has none
	host interface {
		VolumePart(ctx context.Context, pool, name string, offset, n int64) ([]byte, error)
	}
	volume host.StorageVolume
}

func (r volumeReader) ReadAt(p []byte, offset int64) (int, error) {
	part, err := r.host.VolumePart(r.ctx, r.volume.Pool, r.volume.Name, offset, int64(len(p)))
	n := copy(p, part)
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// goneOff is the error of a machine that is off while it is waited for.
func goneOff(is domainxml.Machine) error {
	switch {
	case is.RunError != "":
		return fmt.Errorf("it has gone off: its program could not be started: %s", is.RunError)
	case is.ExitCode != nil:
		return fmt.Errorf("it has gone off: its program has ended with the exit code %d", *is.ExitCode)
	}
	return errors.New("it has gone off")
}

func readExitCode(m *model, is domainxml.Machine) {
	m.ExitCode = types.Int64Null()
	if is.ExitCode != nil {
		m.ExitCode = types.Int64Value(int64(*is.ExitCode))
	}
}

// warnOfProgram warns of a program that could not be started.
func (m model) warnOfProgram(is domainxml.Machine, diags *diag.Diagnostics) {
	if is.RunError != "" {
		diags.AddAttributeWarning(runPath, fmt.Sprintf("The program of machine %s was not started", m.Name.ValueString()),
			fmt.Sprintf("Machine %s on host %s went off again, because: %s", m.Name.ValueString(), m.Host.ValueString(), is.RunError))
	}
}
