package acctest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab"
)

// Rescue starts a transient domain "rescue" outside of Terraform, with a file of the host as its disk in that format. It runs until end is
// called.
func Rescue(t *testing.T, h *lab.Host, format, file string) (end func()) {
	t.Helper()
	definition := filepath.Join(t.TempDir(), "rescue.xml")
	xml := fmt.Sprintf(`<domain type="qemu"><name>rescue</name><memory>32768</memory><os><type>hvm</type></os><devices>
		<disk type="file" device="disk"><driver name="qemu" type=%q/><source file=%q/><target dev="vda"/></disk></devices></domain>`,
		format, file)
	if err := os.WriteFile(definition, []byte(xml), 0o600); err != nil {
		t.Fatal(err)
	}
	Must(h.Virsh(t.Context(), "create", definition))(t)
	return func() {
		t.Helper()
		Must(h.Virsh(t.Context(), "destroy", "rescue"))(t)
	}
}
