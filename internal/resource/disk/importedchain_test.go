package disk

import (
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guard"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// The chain below a disk in a running domain, or in the metadata of a machine, is its master; a definition that was not created by
// virtclaim may lack it.
func TestDisk_ImportedChainContradiction(t *testing.T) {
	lun := func(n string) volume.Image {
		return volume.Image{Type: "network", Protocol: "iscsi", Name: "iqn.2020-01.org.example:vol/" + n}
	}
	own := volume.Image{Type: "file", Name: "/pool/own"}
	noted := own
	noted.Hosts = []string{"a"}
	use := func(live bool, images ...volume.Image) guard.Use {
		return guard.Use{Host: "a", Live: live, Device: domainxml.Attached{Volume: volume.Volume{Images: images}}}
	}
	snapshot := use(true, volume.Image{Type: "file", Name: "/pool/snapshot"}, own, lun("1"))
	snapshot.Depth = 1
	local := func(generation string, hosts ...string) volume.Image {
		return volume.Image{Type: "file", Name: "/pool/base", Generation: generation, Hosts: hosts}
	}
	for name, c := range map[string]struct {
		use     guard.Use
		master  []volume.Image
		refused bool
	}{
		"the same master":                             {use(true, own, lun("1")), []volume.Image{lun("1")}, false},
		"another master":                              {use(true, own, lun("1")), []volume.Image{lun("2")}, true},
		"none though there is one":                    {use(true, own, lun("1")), nil, true},
		"one though there is none":                    {use(true, own), []volume.Image{lun("1")}, true},
		"none, running":                               {use(true, own), nil, false},
		"one though the metadata of a machine say no": {use(false, noted), []volume.Image{lun("1")}, true},
		"a definition that leaves it open":            {use(false, own), []volume.Image{lun("1")}, false},
		"a definition that says another":              {use(false, own, lun("1")), []volume.Image{lun("2")}, true},
		"below a snapshot":                            {snapshot, []volume.Image{lun("1")}, false},
		"below a snapshot, another":                   {snapshot, []volume.Image{lun("2")}, true},
		"a file on the same host":                     {use(true, own, local("g")), []volume.Image{local("g", "a")}, false},
		"a file recreated under the name":             {use(true, own, local("g")), []volume.Image{local("h", "a")}, true},
		"another one further below":                   {use(true, own, local("g"), lun("1")), []volume.Image{local("g", "a"), lun("2")}, true},
	} {
		if got := contradiction([]guard.Use{c.use}, c.master); (got != nil) != c.refused {
			t.Errorf("%s: refused is %v", name, got != nil)
		}
	}
}

// The master of an image that was copied without it is only in a domain's chain.
func TestDisk_ImportedUnnamedMaster(t *testing.T) {
	own := volume.Image{Type: "file", Name: "/pool/own"}
	here, there := own, own
	here.Hosts, there.Hosts = []string{"a"}, []string{"b"}
	master := volume.Image{Type: "file", Name: "/pool/base"}
	lun := volume.Image{Type: "network", Protocol: "iscsi", Name: "iqn.2020-01.org.example:vol/1"}
	for name, c := range map[string]struct {
		images  []volume.Image
		backing string
		unnamed bool
	}{
		"a domain of others has a master below it":               {[]volume.Image{own, master}, "", true},
		"a machine that came from another host":                  {[]volume.Image{there, master}, "", true},
		"a machine of this host, whose disk was converted since": {[]volume.Image{here, master}, "", false},
		"its header references the master":                       {[]volume.Image{own, master}, "/pool/base", false},
		"it has none":                                            {[]volume.Image{own}, "", false},
		"network storage, which no header references":            {[]volume.Image{own, lun}, "", false},
	} {
		u := guard.Use{Host: "a", Device: domainxml.Attached{Volume: volume.Volume{Images: c.images}}}
		if got := isUnnamed(u, host.StorageVolume{Path: "/pool/own", Format: "qcow2", Backing: c.backing}); got != c.unnamed {
			t.Errorf("%s: %v", name, got)
		}
	}
}
