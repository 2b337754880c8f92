package virtualmachine

import (
	"strings"
	"testing"
)

func TestImport_NameWithoutAttribute(t *testing.T) {
	for name, want := range map[string]string{
		"my old vm":  "virsh domrename 'my old vm' 'my-old-vm'",
		"it's\tnew ": `virsh domrename 'it'\''s` + "\t" + `new ' 'it'\''s-new'`,
		" ":          "virsh domrename ' ' 'new-name'",
	} {
		err := checkImportedName("host-a", name)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "terraform import <address> 'host-a/") {
			t.Errorf("%q: got %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"web", "größe", "it's"} {
		if err := checkImportedName("host-a", name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
