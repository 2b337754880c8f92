package tfvalue_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestNoFolder(t *testing.T) {
	of := func(kind string) types.Object {
		return tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{{Type: kind, Name: "/a"}}}, tfvalue.Unknowns{})
	}
	for name, c := range map[string]struct {
		value   types.Object
		refused bool
	}{
		"a folder": {of("dir"), true}, "a file": {of("file"), false}, "none": {types.ObjectNull(tfvalue.VolumeTypes), false},
		"what is not known": {tfvalue.UnknownVolume(), false},
	} {
		var resp validator.ObjectResponse
		(tfvalue.NoFolder{}).ValidateObject(t.Context(), validator.ObjectRequest{ConfigValue: c.value}, &resp)
		if resp.Diagnostics.HasError() != c.refused {
			t.Errorf("%s: %v", name, resp.Diagnostics)
		}
	}
}
