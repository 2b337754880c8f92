package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	libvirthost "github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

type deviceModel struct {
	VendorID   types.String `tfsdk:"vendor_id"`
	Vendor     types.String `tfsdk:"vendor"`
	ProductID  types.String `tfsdk:"product_id"`
	Product    types.String `tfsdk:"product"`
	Address    types.String `tfsdk:"address"`
	Class      types.String `tfsdk:"class"`
	Type       types.String `tfsdk:"type"`
	Parent     types.String `tfsdk:"parent"`
	Driver     types.String `tfsdk:"driver"`
	IOMMUGroup types.Int64  `tfsdk:"iommu_group"`
	HostdevXML types.String `tfsdk:"hostdev_xml"`
}

func deviceAttribute(description string) schema.Attribute {
	return schema.MapNestedAttribute{
		Computed:            true,
		MarkdownDescription: description + " Empty if libvirt does not ask udev there, null with a warning if it does not answer.",
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"vendor_id":   text("The vendor's identifier, such as `8086`; null for a mediated device, as the next three."),
			"vendor":      text("The vendor's name; null if the host does not know it."),
			"product_id":  text("The product's identifier."),
			"product":     text("The product's name; null if the host does not know it."),
			"address":     text("The PCI address, bus and number of a USB device, such as `1.4`, or the UUID."),
			"class":       text("The class of a PCI device, such as `030000` for a graphics card."),
			"type":        text("The type of a mediated device, such as `nvidia-11`."),
			"parent":      text("libvirt's name of the device that it is part of, such as `pci_0000_01_00_0`."),
			"driver":      text("The driver that the device has on the host; null without one."),
			"iommu_group": number("Number of the IOMMU group, all devices of which go to one guest; null without one."),
			"hostdev_xml": text("The device as a `<hostdev>` for a machine's `devices_xml`. A USB device is named by vendor and product, " +
				"or by its address, another one each time it is plugged in, if there are more of them."),
		}},
	}
}

// devices are the calls to a host that readDevices needs.
type devices interface {
	NodeDevices(ctx context.Context) ([]libvirthost.NodeDevice, error)
}

// readDevices leaves the devices null if the host does not list them.
func (m *model) readDevices(ctx context.Context, h devices, diags *diag.Diagnostics) {
	all, err := h.NodeDevices(ctx)
	if err != nil && !errors.Is(err, libvirthost.ErrNoNodeDevices) {
		diags.AddWarning("The devices of the host are not known",
			fmt.Sprintf("pci_devices, usb_devices and mediated_devices are null: %s.", err))
		return
	}
	m.PCI, m.USB, m.Mediated = map[string]deviceModel{}, map[string]deviceModel{}, map[string]deviceModel{}
	count := map[string]int{}
	for _, d := range all {
		count[d.Model()]++
	}
	for _, d := range all {
		is, in, key := domainxml.HostDevice{Kind: d.Kind, Address: d.Address}, m.PCI, d.Address
		switch {
		case d.Kind == "mdev":
			in, is.Model = m.Mediated, vfio(d.Parent)
		case d.Kind == "usb" && count[d.Model()] == 1:
			in, key, is.Address, is.Model = m.USB, d.Port, "", d.Model()
		case d.Kind == "usb":
			in, key = m.USB, d.Port
		}
		in[key] = deviceModel{
			tfvalue.OrNull(d.Vendor), tfvalue.OrNull(d.VendorName), tfvalue.OrNull(d.Product), tfvalue.OrNull(d.ProductName),
			types.StringValue(d.Address), tfvalue.OrNull(d.Class), tfvalue.OrNull(d.Type), tfvalue.OrNull(d.Parent),
			tfvalue.OrNull(d.Driver), types.Int64PointerValue(d.Group), types.StringValue(is.Element()),
		}
	}
}

// vfio is how QEMU opens a mediated device: those of channels and cryptographic adapters are not on PCI.
func vfio(parent string) string {
	switch {
	case strings.HasPrefix(parent, "css_"):
		return "vfio-ccw"
	case strings.HasPrefix(parent, "ap_"):
		return "vfio-ap"
	}
	return "vfio-pci"
}
