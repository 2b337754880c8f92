package artefact

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPackages_KernelDependencies(t *testing.T) {
	for name, test := range map[string]struct {
		list string
		want []string
	}{
		"Debian's meta package": {
			"linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n", []string{"linux-image-6.1.0-56-amd64"},
		},
		"Debian's kernel": {
			"linux-image-6.1.0-56-amd64\n  PreDepends: debconf\n  Depends: kmod\n" +
				"  Depends: linux-base\n |Depends: initramfs-tools\n  Depends: <linux-initramfs-tool>\n", []string{},
		},
		"Ubuntu's meta package": {
			"linux-image-generic\n  Depends: linux-image-6.8.0-88-generic\n  Depends: linux-firmware\n" +
				"  Depends: intel-microcode\n", []string{"linux-image-6.8.0-88-generic"},
		},
		"Ubuntu's kernel": {
			"linux-image-6.8.0-88-generic\n  Depends: kmod\n  Depends: linux-modules-6.8.0-88-generic\n",
			[]string{"linux-modules-6.8.0-88-generic"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, parseKernelDependencies([]byte(test.list))); diff != "" {
				t.Errorf("packages (-want +got):\n%s", diff)
			}
		})
	}
}
