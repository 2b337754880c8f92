package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	libvirthost "github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

type hardware struct {
	all []libvirthost.NodeDevice
	err error
}

func (h hardware) NodeDevices(context.Context) ([]libvirthost.NodeDevice, error) { return h.all, h.err }

func TestModel_ReadDevices(t *testing.T) {
	group := int64(7)
	all := []libvirthost.NodeDevice{
		{Kind: "pci", Address: "0000:0a:1f.2", Vendor: "10de", VendorName: "NVIDIA", Product: "10f8", Class: "040300", Driver: "vfio-pci", Group: &group},
		{Kind: "usb", Address: "1.4", Port: "1-1.2", Vendor: "046d", Product: "c31c"},
		{Kind: "usb", Address: "1.5", Port: "1-1.3", Vendor: "046d", Product: "c077"},
		{Kind: "usb", Address: "2.12", Port: "2-1", Vendor: "046d", Product: "c077"},
		{Kind: "mdev", Address: "c2177883-f1bb-47f0-914d-32a22e3a8804", Type: "vfio_ccw-io", Parent: "css_0_0_0023", Group: &group},
	}
	var is model
	var diags diag.Diagnostics
	is.readDevices(t.Context(), hardware{all: all}, &diags)
	if len(diags) > 0 || len(is.PCI) != 1 || len(is.USB) != 3 || len(is.Mediated) != 1 {
		t.Fatalf("%v; got %+v", diags, is)
	}
	p, m := is.PCI["0000:0a:1f.2"], is.Mediated["c2177883-f1bb-47f0-914d-32a22e3a8804"]
	if p.Vendor.ValueString() != "NVIDIA" || !p.Product.IsNull() || p.ProductID.ValueString() != "10f8" || p.Class.ValueString() != "040300" ||
		p.Driver.ValueString() != "vfio-pci" || p.IOMMUGroup.ValueInt64() != 7 || m.Type.ValueString() != "vfio_ccw-io" || m.IOMMUGroup.ValueInt64() != 7 {
		t.Errorf("got %+v, %+v", p, m)
	}
	if u := is.USB["2-1"]; u.Address.ValueString() != "2.12" || !u.Product.IsNull() {
		t.Errorf("got %+v", u)
	}
	for text, want := range map[string]domainxml.HostDevice{
		p.HostdevXML.ValueString():               {Kind: "pci", Address: "0000:0a:1f.2"},
		is.USB["1-1.2"].HostdevXML.ValueString(): {Kind: "usb", Model: "046d:c31c"},
		is.USB["1-1.3"].HostdevXML.ValueString(): {Kind: "usb", Address: "1.5"},
		m.HostdevXML.ValueString():               {Kind: "mdev", Address: "c2177883-f1bb-47f0-914d-32a22e3a8804", Model: "vfio-ccw"},
	} {
		if got, err := domainxml.HostDevicesIn(text); err != nil || !slices.Equal(got, []domainxml.HostDevice{want}) {
			t.Errorf("%s is %v, %v", text, got, err)
		}
	}
}

func TestModel_UnknownDevicesIsNoError(t *testing.T) {
	var none, unknown model
	var diags diag.Diagnostics
	none.readDevices(t.Context(), hardware{err: fmt.Errorf("a: %w", libvirthost.ErrNoNodeDevices)}, &diags)
	if len(diags) > 0 || none.PCI == nil || none.USB == nil || none.Mediated == nil {
		t.Errorf("without udev: %v, %+v", diags, none)
	}
	unknown.readDevices(t.Context(), hardware{err: errors.New("virtnodedevd is down")}, &diags)
	if diags.HasError() || !strings.Contains(details(diags.Warnings()), "virtnodedevd is down") || unknown.PCI != nil {
		t.Errorf("without an answer: %v, %+v", diags, unknown)
	}
}

func TestModel_FitsTheSchema(t *testing.T) {
	var answer datasource.SchemaResponse
	New().Schema(t.Context(), datasource.SchemaRequest{}, &answer)
	state := tfsdk.State{Schema: answer.Schema, Raw: tftypes.NewValue(answer.Schema.Type().TerraformType(t.Context()), nil)}
	var m model
	m.Timeouts = timeouts.Value{Object: types.ObjectNull(map[string]attr.Type{"read": types.StringType})}
	var diags diag.Diagnostics
	m.readDevices(t.Context(), hardware{all: []libvirthost.NodeDevice{{Kind: "pci", Address: "0000:0a:1f.2"}, {Kind: "mdev", Address: "a"}, {Kind: "usb", Address: "1.4", Port: "1-1"}}}, &diags)
	if diags.Append(state.Set(t.Context(), m)...); diags.HasError() {
		t.Error(diags)
	}
}
