package virtualmachine

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/types"
)

func TestDefaultBus(t *testing.T) {
	unknown, of := types.StringUnknown(), types.StringValue
	for name, c := range map[string]struct{ device, machineType, want types.String }{
		"disk on pc":                   {of("disk"), of("pc"), of("virtio")},
		"disk on q35":                  {of("disk"), of("q35"), of("virtio")},
		"disk on what is not known":    {of("disk"), unknown, of("virtio")},
		"cdrom on pc":                  {of("cdrom"), of("pc"), of("ide")},
		"cdrom on pc by its full name": {of("cdrom"), of("pc-i440fx-7.2"), of("ide")},
		"cdrom on libvirt's choice":    {of("cdrom"), types.StringNull(), of("ide")},
		"cdrom on q35":                 {of("cdrom"), of("pc-q35-7.2"), of("sata")},
		"cdrom on what is not known":   {of("cdrom"), unknown, unknown},
		"what is not known on q35":     {unknown, of("q35"), unknown},
	} {
		if got := defaultBus(c.device, c.machineType); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
