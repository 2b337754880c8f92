package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProcessor_Parse(t *testing.T) {
	got, err := parseProcessor(`<cpu mode='custom' match='exact'><model fallback='forbid'>EPYC</model><vendor>AMD</vendor>
		<feature policy='require' name='sse2'/><feature policy='disable' name='vme'/><feature policy='require' name='aes'/></cpu>`)
	if diff := cmp.Diff(Processor{"EPYC", "AMD", []string{"aes", "sse2"}}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
