package virtualmachine

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// The value of a variable is wholly unknown to terraform validate.
func TestUnknown_ElementIsAccepted(t *testing.T) {
	m := model{
		Interfaces:  types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, map[string]attr.Value{"lan": types.ObjectUnknown(interfaceTypes)}),
		Filesystems: types.MapValueMust(types.ObjectType{AttrTypes: filesystemTypes}, map[string]attr.Value{"a": types.ObjectUnknown(filesystemTypes)}),
		WaitFor: types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
			"addresses": types.SetValueMust(types.StringType, []attr.Value{types.StringValue("lan")}),
			"agent":     types.BoolNull(), "cloud_init": types.BoolNull(), "timeout": types.StringNull(),
		}),
	}
	var diags diag.Diagnostics
	for _, check := range []attributeGroup{interfacesGroup, filesystemsGroup, addressesGroup} {
		check.check(t.Context(), m, &diags)
	}
	if diags.HasError() {
		t.Error(diags)
	}
}

func waitForTypes(t *testing.T) map[string]attr.Type {
	t.Helper()
	return waitForAttribute().GetType().(types.ObjectType).AttrTypes
}

func TestOtherMachine_AliasIsNoChange(t *testing.T) {
	for asked, stored := range map[string]string{"virt": "virt-7.2", "q35": "pc-q35-7.2", "pc": "pc-i440fx-7.2", "s390-ccw-virtio": "s390-ccw-virtio-7.2"} {
		if otherMachine(machineModel{Type: types.StringValue(stored)}, machineModel{Type: types.StringValue(asked)}) {
			t.Errorf("%s is another machine than %s", asked, stored)
		}
	}
	for asked, stored := range map[string]string{"virt": "virtual-7.2", "q35": "pc-i440fx-7.2", "pc": "pc-q35-7.2"} {
		if !otherMachine(machineModel{Type: types.StringValue(stored)}, machineModel{Type: types.StringValue(asked)}) {
			t.Errorf("%s is the same machine as %s", asked, stored)
		}
	}
	if !otherMachine(machineModel{DomainType: types.StringValue("qemu")}, machineModel{DomainType: types.StringValue("kvm")}) {
		t.Error("an emulated machine is the same as one that is not")
	}
}

// A machine is replaced for another type only if the host resolves it to another one.
func TestOtherMachine_UnknownAliasReplacesNothing(t *testing.T) {
	of := func(s string) machineModel { return machineModel{Type: types.StringValue(s)} }
	for _, c := range []struct {
		was, is, want string
		stays         bool
		refused       bool
	}{
		{"pc-q35-7.2", "q35", "pc-q35-7.2", true, false},
		{"pc-i440fx-jammy", "ubuntu", "ubuntu", true, true},
		{"pc-i440fx-jammy", "ubuntu", "ubuntu", false, false}, // it is replaced anyway
	} {
		var diags diag.Diagnostics
		got := (&virtualMachine{}).spelling(t.Context(), model{Host: types.StringValue("node-a")}, of(c.was), of(c.is), c.stays, &diags)
		if got.ValueString() != c.want || diags.HasError() != c.refused {
			t.Errorf("%s to %s: %s, %v", c.was, c.is, got, diags)
		}
	}
}

func TestKernel_EmptyCommandLine(t *testing.T) {
	m := model{Boot: types.ObjectValueMust(bootTypes, map[string]attr.Value{
		"kernel": types.StringValue("/vmlinuz"), "initrd": types.StringNull(), "cmdline": types.StringValue(""),
	})}
	before := m.Boot
	readBoot(&m, domainxml.Machine{Boot: &domainxml.Boot{Kernel: "/vmlinuz"}})
	if !m.Boot.Equal(before) {
		t.Errorf("%s has become %s", before, m.Boot)
	}
}

func TestVideo_MemoryIsPowerOfTwo(t *testing.T) {
	for n, fits := range map[int64]bool{16384: true, 10000: false, 0: false, -2: false} {
		resp := validator.Int64Response{}
		powerOfTwo{}.ValidateInt64(t.Context(), validator.Int64Request{Path: path.Root("vram"), ConfigValue: types.Int64Value(n)}, &resp)
		if resp.Diagnostics.HasError() == fits {
			t.Errorf("%d: %v", n, resp.Diagnostics)
		}
	}
}

func TestPlan_WarnsOfLostTPMKeys(t *testing.T) {
	efi := types.ObjectValueMust(firmwareTypes, map[string]attr.Value{"type": types.StringValue("efi"), "secure_boot": types.BoolNull()})
	bios := types.ObjectValueMust(firmwareTypes, map[string]attr.Value{"type": types.StringValue("bios"), "secure_boot": types.BoolNull()})
	tpm := types.ObjectValueMust(tpmTypes, map[string]attr.Value{"model": types.StringNull(), "version": types.StringValue("2.0")})
	for name, c := range map[string]struct {
		m     model
		warns bool
	}{
		"nothing": {model{}, false}, "bios": {model{Firmware: bios}, false}, "efi": {model{Firmware: efi}, true}, "tpm": {model{TPM: tpm}, true},
	} {
		var diags diag.Diagnostics
		if c.m.warnOfLoss("Destroying", &diags); diags.WarningsCount() > 0 != c.warns {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
