package domainxml

import (
	"strings"
	"testing"
)

// libvirt removes the state of a device only with a domain that has the device: ForUndefine restores those that a machine had
// earlier.
func TestForUndefine_RestoresLostDevices(t *testing.T) {
	m := machines()["uefi"]
	text, err := Build(m)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := domain(t, text).ForUndefine(); again != "" || err != nil {
		t.Errorf("it has all, but gets %q, %v", again, err)
	}
	d, err := Unmarshal(text)
	if err != nil {
		t.Fatal(err)
	}
	d.Metadata = nil // as in a domain that was defined outside of Terraform
	if text, err = d.Marshal(); err != nil {
		t.Fatal(err)
	}
	m.Firmware, m.TPM = nil, nil
	for range 2 { // also when the devices were removed by an earlier update
		if text, err = domain(t, text).Update(m); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(text, `firmware="efi"`) || strings.Contains(text, "<tpm") {
		t.Errorf("it still has what was taken away:\n%s", text)
	}
	whole, err := domain(t, text).ForUndefine()
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`<os firmware="efi">`, `<backend type="emulator"`} {
		if !strings.Contains(whole, part) {
			t.Errorf("%s is missing in\n%s", part, whole)
		}
	}
}

func TestUpdate_KeepsFirmwareFile(t *testing.T) {
	text, err := Build(machines()["uefi"])
	if err != nil {
		t.Fatal(err)
	}
	const files = `<loader readonly="yes" type="pflash">/code.fd</loader><nvram template="/vars.fd">/nvram/uefi.fd</nvram></os>`
	text = strings.Replace(text, "</os>", files, 1)
	m := machines()["uefi"]
	same, err := domain(t, text).Update(m)
	if err != nil || !strings.Contains(same, "/code.fd") || !strings.Contains(same, `template="/vars.fd"`) {
		t.Errorf("without another firmware its files are gone (%v) from\n%s", err, same)
	}
	m.Firmware = &Firmware{Type: UEFI, SecureBoot: true}
	other, err := domain(t, text).Update(m)
	if err != nil || strings.Contains(other, "/code.fd") || strings.Contains(other, "template") || !strings.Contains(other, "/nvram/uefi.fd") {
		t.Errorf("with another firmware only the file of its variables is to stay (%v) in\n%s", err, other)
	}
}
