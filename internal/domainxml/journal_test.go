package domainxml

import (
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// A domain that fills a volume counts as a writer of it.
func TestAttached_FilledVolume(t *testing.T) {
	port := int64(3260)
	target := volume.Image{
		Type: "network", Protocol: "iscsi", Format: "raw", Name: "iqn.2020-01.org.example:a/1", Servers: []volume.Server{{Host: "10.0.0.5", Port: &port}},
		Auth: &volume.Auth{Type: "iscsi", Username: "user", SecretUUID: "35f7afef-79c3-55b8-bc0a-fe6a6e122d2b"},
	}
	disk, err := WritableDiskXML(volume.Volume{Images: []volume.Image{target}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := BuildJournal(Journal{
		Name: "virtclaim-0123456789abcdef", UUID: "0d2ea09e-59a6-5b0f-8a6c-0b0b6c7f4f51",
		Note: Note{Owner: "prod", Pool: "ssd", Volume: "virtclaim-fill-0123456789abcdef", Target: disk},
	})
	if err != nil {
		t.Fatal(err)
	}
	d, err := Read(text)
	if err != nil {
		t.Fatal(err)
	}
	all := d.Attached()
	if len(all) != 1 || !all[0].Writes() || !volume.SameStorage(all[0].Volume.Images[0], target) {
		t.Errorf("attached is %+v", all)
	}
}
