//go:build acc

package host_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/acctest"
)

func TestAccMissingFeatures_OfEmulation(t *testing.T) {
	l := acctest.Lab(t)
	h, labHost := hostA(t, l)
	run(t, l, h, "web")
	live := acctest.Must(labHost.Virsh(t.Context(), "dumpxml", "web"))(t)
	cpu := regexp.MustCompile(`(?s)<cpu .*</cpu>`).FindString(live)
	if !strings.Contains(cpu, "lahf_lm") {
		t.Fatalf("the live domain lists no features: %s", live)
	}
	of := host.Hardware{Arch: "x86_64", Type: "q35", DomainType: "qemu"}
	if missing, err := h.MissingFeatures(t.Context(), of, cpu); missing != "" || err != nil {
		t.Errorf("for a guest that runs there it lacks %q, %v", missing, err)
	}
	more := strings.Replace(cpu, "</cpu>", "<feature policy='require' name='avx512f'/><feature policy='require' name='amx-tile'/></cpu>", 1)
	if missing, err := h.MissingFeatures(t.Context(), of, more); missing != "avx512f, amx-tile" || err != nil {
		t.Errorf("for a processor that QEMU does not emulate it lacks %q, %v", missing, err)
	}
	if missing, err := h.MissingFeatures(t.Context(), of, "<cpu><model>none</model></cpu>"); missing != "" || err == nil {
		t.Errorf("for a model that libvirt does not know it lacks %q, %v", missing, err)
	}
}
