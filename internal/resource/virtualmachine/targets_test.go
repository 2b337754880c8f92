package virtualmachine

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// disksOf are disks by key, each with "<bus> <target>"; more changes a disk.
func disksOf(t *testing.T, all map[string]string, more func(key string, d *diskModel)) types.Map {
	t.Helper()
	disks := map[string]diskModel{}
	for key, text := range all {
		bus, target, _ := strings.Cut(text, " ")
		d := diskModel{
			Volume: types.ObjectUnknown(tfvalue.VolumeTypes), Device: types.StringValue(domainxml.Fixed), Bus: types.StringValue(bus),
			Target: types.StringValue(target), IOTune: types.ObjectNull(ioTuneTypes),
		}
		if target == "?" {
			d.Target = types.StringUnknown()
		}
		if more != nil {
			more(key, &d)
		}
		disks[key] = d
	}
	m, diags := types.MapValueFrom(t.Context(), types.ObjectType{AttrTypes: diskTypes}, disks)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return m
}

// A disk keeps its target until another one is configured for it, or that target for another disk.
func TestKeepTargets(t *testing.T) {
	type targets = map[string]string
	for name, c := range map[string]struct{ before, given, want targets }{
		"a disk that sorts before it is added": {
			targets{"root": "virtio vda"},
			targets{"root": "virtio ?", "data": "virtio ?"},
			targets{"root": "vda", "data": "?"},
		},
		"both stay": {
			targets{"root": "virtio vda", "data": "virtio vdb"},
			targets{"root": "virtio ?", "data": "virtio ?"},
			targets{"root": "vda", "data": "vdb"},
		},
		"on another bus": {
			targets{"root": "virtio vda"}, targets{"root": "scsi ?"}, targets{"root": "?"},
		},
		"another one is configured": {
			targets{"root": "virtio vda"}, targets{"root": "virtio vdc"}, targets{"root": "vdc"},
		},
		"it is configured for another disk": {
			targets{"root": "virtio vda"},
			targets{"root": "virtio ?", "data": "virtio vda"},
			targets{"root": "?", "data": "vda"},
		},
		"a new machine": {nil, targets{"root": "virtio ?"}, targets{"root": "?"}},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			before := disksOf(t, c.before, nil)
			given := model{Disks: disksOf(t, c.given, func(_ string, d *diskModel) {
				if d.Target.IsUnknown() {
					d.Target = types.StringNull()
				}
			})}.disks()
			m := model{Disks: disksOf(t, c.given, func(key string, d *diskModel) { // Terraform proposes the one in the state
				if was, had := (model{Disks: before}).disks()[key]; had && d.Target.IsUnknown() {
					d.Target = was.Target
				}
			})}
			m.keepTargets(before, given)
			for key, d := range m.disks() {
				got := d.Target.ValueString()
				if d.Target.IsUnknown() {
					got = "?"
				}
				if got != c.want[key] || diags.HasError() {
					t.Errorf("%s is %s, not %s; %v", key, got, c.want[key], diags)
				}
			}
		})
	}
}

// A machine that boots from one of several disks, none of which is said to be the one, is told which that is when it is created, and when
// that may change.
func TestWarnOfBootDisk(t *testing.T) {
	two := map[string]string{"root": "virtio vda", "data": "virtio vdb"}
	kernel := types.ObjectValueMust(bootTypes, map[string]attr.Value{"kernel": types.StringValue("/vmlinuz"), "initrd": types.StringNull(), "cmdline": types.StringNull()})
	ordered := func(key string, d *diskModel) {
		if key == "root" {
			d.BootOrder = types.Int64Value(1)
		}
	}
	medium := func(key string, d *diskModel) {
		if key == "seed" {
			d.Device = types.StringValue(domainxml.CDROM)
		}
	}
	of := func(all map[string]string, more func(string, *diskModel)) model {
		return model{Name: types.StringValue("web"), Host: types.StringValue("node-a"), Disks: disksOf(t, all, more), Boot: types.ObjectNull(bootTypes)}
	}
	direct := of(two, nil)
	direct.Boot = kernel
	for name, c := range map[string]struct {
		state, plan model
		want        string
	}{
		"a new machine":                     {model{}, of(map[string]string{"root": "virtio ?", "data": "virtio ?"}, nil), "boots from disk data"},
		"a new one with a target":           {model{}, of(map[string]string{"root": "virtio vda", "data": "virtio ?"}, nil), "boots from disk root"},
		"with another target":               {model{}, of(map[string]string{"root": "virtio vdb", "data": "virtio ?"}, nil), "boots from disk data"},
		"with one disk":                     {model{}, of(map[string]string{"root": "virtio ?"}, nil), ""},
		"with one disk and a medium":        {model{}, of(map[string]string{"root": "virtio ?", "seed": "sata ?"}, medium), ""},
		"with an order":                     {model{}, of(two, ordered), ""},
		"with a kernel":                     {model{}, direct, ""},
		"nothing changes":                   {of(two, nil), of(two, nil), ""},
		"a disk is added":                   {of(map[string]string{"root": "virtio vda"}, nil), of(map[string]string{"root": "virtio vda", "data": "virtio ?"}, nil), "boots from disk root"},
		"the order is removed":              {of(two, ordered), of(two, nil), "boots from disk root"},
		"the kernel is removed":             {direct, of(two, nil), "boots from disk root"},
		"the first one is on another place": {of(two, nil), of(map[string]string{"root": "virtio vdc", "data": "virtio vdb"}, nil), "boots from disk data"},
	} {
		t.Run(name, func(t *testing.T) {
			var diags diag.Diagnostics
			c.plan.warnOfBootDisk(c.state, &diags)
			if diags.HasError() || len(diags) != min(len(c.want), 1) || c.want != "" && !strings.Contains(diags[0].Detail(), c.want) {
				t.Errorf("got %v", diags)
			}
		})
	}
}

// A target that is not known yet may turn out to be any other disk's.
func TestKeepTargets_UnknownSibling(t *testing.T) {
	var diags diag.Diagnostics
	before := disksOf(t, map[string]string{"root": "virtio vda", "data": "virtio vdb"}, nil)
	m := model{Disks: before}
	given := map[string]diskModel{"root": {Target: types.StringUnknown()}, "data": {}}
	m.keepTargets(before, given)
	if got := m.disks()["data"].Target; !got.IsUnknown() || diags.HasError() {
		t.Errorf("data is planned to be %s: %v", got, diags)
	}
}
