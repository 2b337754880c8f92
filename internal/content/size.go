package content

import (
	"context"
	"errors"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Measurer is a host that opens volumes to measure them.
type Measurer interface {
	Measure(ctx context.Context, diskXML string, head uint32) (host.Measured, error)
}

// SizeOf is the size in bytes that a guest sees of a binding's volume, which a host opens, unless it is a file: tenants may replace that.
func SizeOf(ctx context.Context, h Measurer, on Folders, v volume.Volume) (int64, error) {
	if top := v.Images[0]; top.Type == "file" && top.Binding != "" {
		is, err := MeasureFile(ctx, on, top.Name)
		if err != nil {
			return 0, err
		}
		return CapacityAs(top.Format, is)
	}
	xml, err := domainxml.DiskXML(v)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("no answer within a minute"))
	defer cancel()
	is, err := h.Measure(ctx, xml, 0)
	return is.Size, err
}
