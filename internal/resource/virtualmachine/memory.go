package virtualmachine

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var memoryGroup = attributeGroup{attributes: memoryAttributes, intent: memoryIntent, read: readMemory, check: checkMemory}

func memoryAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"memory": schema.StringAttribute{
			Required: true, CustomType: tfvalue.QuantityType{},
			MarkdownDescription: "Memory as a Kubernetes quantity, such as `512Mi` or `2Gi`; below `1Mi` a suffix is required. Rounded " +
				"up to whole KiB. Changed live, up to the running machine's `max_memory`, if the guest has the virtio balloon driver; " +
				"otherwise at the next start.",
		},
		"max_memory": schema.StringAttribute{
			Optional: true, CustomType: tfvalue.QuantityType{},
			MarkdownDescription: "Maximum memory of the running guest; defaults to `memory`. A guest without the balloon driver has " +
				"all of it. Changes take effect at the next start.",
		},
	}
}

func checkMemory(_ context.Context, m model, diags *diag.Diagnostics) {
	if m.Memory.IsUnknown() || m.MaxMemory.IsNull() || m.MaxMemory.IsUnknown() {
		return
	}
	now, err := m.Memory.KiB()
	most, errMost := m.MaxMemory.KiB()
	if err == nil && errMost == nil && now > most {
		diags.AddAttributeError(path.Root("max_memory"), "More memory than the maximum",
			fmt.Sprintf("The machine is to have %s, and can have %s at most. Raise max_memory, or lower memory.",
				m.Memory.ValueString(), m.MaxMemory.ValueString()))
	}
}

func memoryIntent(_ context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	for _, q := range []struct {
		name string
		is   tfvalue.Quantity
		kib  *uint
	}{{"memory", m.Memory, &want.Memory}, {"max_memory", m.MaxMemory, &want.MaxMemory}} {
		if q.is.IsNull() {
			continue
		}
		var err error
		if *q.kib, err = q.is.KiB(); err != nil {
			diags.AddAttributeError(path.Root(q.name), "Invalid quantity", err.Error())
		}
	}
	if want.MaxMemory == want.Memory {
		want.MaxMemory = 0
	}
}

func readMemory(m *model, is domainxml.Machine) {
	said, _ := m.Memory.KiB()
	if now, ok := m.scaled(said, is.Memory, is.Drift.Memory); ok {
		m.Memory = m.Memory.OrSame(tfvalue.QuantityOfKiB(now))
	} else {
		m.Memory = tfvalue.Quantity{StringValue: types.StringNull()}
	}
	switch {
	case is.MaxMemory != 0:
		m.MaxMemory = m.MaxMemory.OrSame(tfvalue.QuantityOfKiB(is.MaxMemory))
	case !m.MaxMemory.IsNull():
		m.MaxMemory = m.MaxMemory.OrSame(tfvalue.QuantityOfKiB(is.Memory))
	}
}

// scaled is the size that a refresh shows: said is the one in state, stored the one in the persistent definition, and drift the running
// machine's, which is 0 if it equals stored. It is the running one if stored equals said. Otherwise an update was interrupted, or the
// definition was changed outside of Terraform: then the size is unknown, so that any plan updates both.
func (m model) scaled(said, stored, drift uint) (now uint, known bool) {
	switch {
	case drift == 0 || m.isImport():
		return stored, true
	case said == stored:
		return drift, true
	}
	return 0, false
}
