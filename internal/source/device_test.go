package source_test

import (
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

func TestDevice_Check(t *testing.T) {
	wwid := []string{"naa.600508B400105E21"}
	known := []string{"3600508b400105e21", "wwn-0x600508b400105e21"}
	for name, tt := range map[string]struct {
		ids   []string
		size  int64
		names []string
		want  string
	}{
		"the size":                 {nil, 100, nil, ""},
		"rounded up":               {nil, 120, known, ""},
		"too small":                {nil, 99, nil, "it has 99 bytes, and the volume has from 100 to 120"},
		"much larger":              {nil, 121, known, "it has 121 bytes"},
		"the same name":            {wwid, 100, known, ""},
		"another name":             {wwid, 100, []string{"3600508b4deadbeef"}, "knows it as [\"3600508b4deadbeef\"]"},
		"a host that has no names": {wwid, 100, nil, ""},
		"the name of another size": {wwid, 200, known, "it has 200 bytes"},
		"another spelling":         {[]string{"60-05-08-B4:00 105e21"}, 100, known, ""},
		"a name without digits":    {[]string{"0x"}, 100, known, "knows it as"},
		"one name of two":          {append(wwid, "gone"), 100, known, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := source.Device{Least: 100, Most: 120, IDs: tt.ids}.Check(tt.size, tt.names)
			if err == nil != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
