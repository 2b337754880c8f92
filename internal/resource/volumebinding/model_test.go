package volumebinding

import (
	"reflect"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A binding in state keeps its volume's reference to it, also that of an older virtclaim: otherwise no plan would be empty.
func TestModel_InstanceStaysAsInState(t *testing.T) {
	const id = "9d3f0c1b-6b0e-5d0c-8f5e-2f6d3c1b7a90"
	own := privateState{Nonce: "0a1b2c3d-aaaa-4bbb-8ccc-dddddddddddd"}
	for was, want := range map[string]string{id: id, id + "/ffffffff": id + "/ffffffff", "": id + "/0a1b2c3d"} {
		image := volume.Image{Type: "file", Name: "/a", Binding: was}
		state := model{
			ID: types.StringValue(id), Source: types.ObjectNull(nil),
			Volume: tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{image}}, tfvalue.Unknowns{}),
		}
		var diags diag.Diagnostics
		if got := state.instance(t.Context(), &state, own, &diags); got != want || diags.HasError() {
			t.Errorf("%q becomes %q, %v", was, got, diags)
		}
	}
}

// A recreated claim leads to the bound storage only if it got the same PersistentVolume; whether the binding of an older virtclaim had that
// one is not known.
func TestPrivateState_ClaimMadeAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		was    privateState
		found  claim.Info
		remade bool
	}{
		"a new binding":               {privateState{}, claim.Info{UID: "a", VolumeUID: "v"}, false},
		"the same claim":              {privateState{ClaimUID: "a", VolumeUID: "v"}, claim.Info{UID: "a", VolumeUID: "v"}, false},
		"another volume":              {privateState{ClaimUID: "a", VolumeUID: "v"}, claim.Info{UID: "b", VolumeUID: "w"}, true},
		"the same volume":             {privateState{ClaimUID: "a", VolumeUID: "v"}, claim.Info{UID: "b", VolumeUID: "v"}, false},
		"a volume that nobody noted":  {privateState{ClaimUID: "a"}, claim.Info{UID: "b", VolumeUID: "v"}, true},
		"after an update that failed": {privateState{ClaimUID: "b", VolumeUID: "w", Remade: true}, claim.Info{UID: "b", VolumeUID: "w"}, true},
		"once more, after such a one": {privateState{ClaimUID: "b", VolumeUID: "w", Remade: true}, claim.Info{UID: "c", VolumeUID: "w"}, true},
	} {
		own := tt.was
		own.note(tt.found)
		if own.Remade != tt.remade || own.ClaimUID != tt.found.UID || own.VolumeUID != tt.found.VolumeUID {
			t.Errorf("%s: %+v", name, own)
		}
	}
}

// A folder that is shared keeps the capacity of its claim, and has no identity that a guest's writes would change.
func TestModel_SharedFolder(t *testing.T) {
	capacity := int64(1 << 30)
	folder := volume.Volume{Capacity: &capacity, Images: []volume.Image{{Type: "dir", Format: "dir", Name: "/mnt/disk.img"}}}
	m := model{AccessMode: types.StringValue("write-shared"), Content: types.StringValue("c")}
	v := m.held(folder, []string{"a"}, "id/i/vms/data")
	if top := v.Images[0]; v.Capacity == nil || top.Generation != "" || top.AccessMode != volume.WriteShared || top.Binding == "" {
		t.Errorf("got %+v", v)
	}
	is, known, diags := tfvalue.VolumeFrom(tfvalue.VolumeObject(v, tfvalue.Unknowns{Instance: true}))
	if !known || diags.HasError() || !reflect.DeepEqual(is, v) {
		t.Errorf("got back %+v, %v", is, diags)
	}
}
