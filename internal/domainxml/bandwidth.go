package domainxml

import "libvirt.org/go/libvirtxml"

func (is Interface) isLimited() bool { return is.Inbound != Bandwidth{} || is.Outbound != Bandwidth{} }

// parseBandwidth returns no limit for a floor, which only guarantees.
func parseBandwidth(e *libvirtxml.DomainInterfaceBandwidthParams) (b Bandwidth) {
	value := func(n *int) uint {
		if n == nil {
			return 0
		}
		return uint(*n)
	}
	if e == nil || e.Average == nil {
		return b
	}
	return Bandwidth{value(e.Average), value(e.Peak), value(e.Burst)}
}

// bandwidthElement is the element with the limits of want, and with the floor of is.
func bandwidthElement(is *libvirtxml.DomainInterfaceBandwidth, want Interface) *libvirtxml.DomainInterfaceBandwidth {
	if is == nil {
		is = &libvirtxml.DomainInterfaceBandwidth{}
	}
	e := libvirtxml.DomainInterfaceBandwidth{Inbound: want.Inbound.element(is.Inbound), Outbound: want.Outbound.element(is.Outbound)}
	if e.Inbound == nil && e.Outbound == nil {
		return nil
	}
	return &e
}

func (b Bandwidth) element(is *libvirtxml.DomainInterfaceBandwidthParams) *libvirtxml.DomainInterfaceBandwidthParams {
	positive := func(n uint) *int {
		if n == 0 {
			return nil
		}
		i := int(n)
		return &i
	}
	e := libvirtxml.DomainInterfaceBandwidthParams{Average: positive(b.Average), Peak: positive(b.Peak), Burst: positive(b.Burst)}
	if is != nil {
		e.Floor = is.Floor
	}
	if e == (libvirtxml.DomainInterfaceBandwidthParams{}) {
		return nil
	}
	return &e
}
