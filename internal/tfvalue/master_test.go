package tfvalue_test

import (
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A disk below an overlay is read-shared, known or not. An image with an unknown binding keeps its mode.
func TestReadBelow(t *testing.T) {
	disk := volume.Image{Type: "file", Name: "/ssd/a", AccessMode: volume.WriteExclusive, Hosts: []string{"a"}}
	top := volume.Volume{Images: []volume.Image{disk}}
	for name, c := range map[string]struct {
		below tfvalue.Unknowns
		want  volume.AccessMode
	}{
		"known": {tfvalue.Unknowns{}, volume.ReadShared}, "to be made": {tfvalue.Unknowns{Local: true}, volume.ReadShared},
		"bound": {tfvalue.Unknowns{Binding: true}, volume.WriteExclusive},
	} {
		o := tfvalue.ReadBelow(tfvalue.Over(top, tfvalue.Unknowns{}, tfvalue.VolumeObject(top, c.below)))
		v, ok, diags := tfvalue.VolumeFrom(o)
		if !ok || diags.HasError() || v.Images[0].AccessMode != volume.WriteExclusive || v.Images[1].AccessMode != c.want {
			t.Errorf("%s: %+v %v", name, v, diags)
		}
	}
	if o := tfvalue.UnknownVolume(); !tfvalue.ReadBelow(o).Equal(o) {
		t.Error("an unknown volume has become known")
	}
}
