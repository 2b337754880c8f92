package guard

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guide"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ExplainExternal describes how the chain of a domain's disk was changed outside of Terraform, and the remedy.
func ExplainExternal(domain, key string, e domainxml.External) string {
	is := fmt.Sprintf("disk %s (%s) of domain %s", key, e.Target, domain)
	switch {
	case e.Job == "backup":
		return fmt.Sprintf("a backup of %s runs. Wait until it has ended (virsh domjobinfo %[2]s), or end it: virsh domjobabort %[2]s", is,
			domain)
	case e.Job != "":
		return fmt.Sprintf("a block job (%s) runs on %s. Wait until it has ended, or end it: virsh blockjob %s %s --abort", e.Job, is,
			domain, e.Target)
	case e.Cut && len(e.Chain) > 0 && len(e.Noted) > len(e.Chain):
		return fmt.Sprintf("%s opens its volume %s, which is no overlay of %s any more, as after virsh blockpull: over that it would be a "+
			"mix of two disks. %s", is, e.Chain[0].Name, pulled(e), domainxml.TakeCut)
	case e.Depth > 0:
		return explainOverlay(is, domain, e)
	case len(e.Chain) == 0 || len(e.Noted) == 0:
		return is + " has another chain than is noted"
	case slices.Contains(e.Noted[1:], e.Chain[0].Name) && volume.IsBase(e.Chain[0].Name):
		return fmt.Sprintf("%s opens %s, which its volume %s is an overlay of, as other disks are, and writes there: use none of those "+
			"any more. Stop the domain, and copy what it has: %[4]s. "+guide.See+"troubleshooting#committed-masters",
			is, e.Chain[0].Name, e.Noted[0], image.ConvertCommand(e.Chain[0].Format, "qcow2", e.Chain[0].Name))
	case slices.Contains(e.Noted[1:], e.Chain[0].Name):
		return fmt.Sprintf("%s opens %s, which its volume %s is an overlay of, and writes there: use no other overlay of it, and never "+
			"%[3]s again. Give the machine the virtclaim_disk %[2]s. "+guide.See+"troubleshooting#committed-masters",
			is, e.Chain[0].Name, e.Noted[0])
	}
	return fmt.Sprintf("%s opens %s and not its volume %s, so that what the guest writes is there: it was copied or pulled there (virsh "+
		"blockcopy, blockpull), or is an overlay. Import that as a virtclaim_disk and give it to the machine, or have all of it lost: "+
		"virsh detach-disk %s %s --persistent", is, e.Chain[0].Name, e.Noted[0], domain, e.Target)
}

// pulled is the first recorded image that is missing in the chain.
func pulled(e domainxml.External) string {
	n := 0
	for n < len(e.Chain) && n < len(e.Noted)-1 && e.Chain[n].Name == e.Noted[n] {
		n++
	}
	return e.Noted[n]
}

// Rescue describes how to save the data of a running domain whose file was deleted. Without --transient-job, virsh refuses to copy a disk
// of a persistent domain.
func Rescue(domain, target string) string {
	return fmt.Sprintf("virsh suspend %[1]s, so that its guest writes nothing after the copy, then virsh blockcopy %[1]s %[2]s <new file> "+
		"--transient-job --wait --finish, then virsh destroy %[1]s", domain, target)
}

// ExplainMaster is the remedy for a running domain that may have the only copy of a master of its disk.
func ExplainMaster(domain string, disk domainxml.Attached, err error) error {
	return fmt.Errorf("domain %s, disk %s: %w. To save what its guest has as one image that needs no master: %s. To save the master for "+
		"other overlays, copy it from /proc/<process of QEMU>/fd on the host while the domain runs. To go on without both, shut the "+
		"domain down first (running = false, or virsh destroy %s)", domain, disk.Key, err, Rescue(domain, disk.Target), domain)
}

func explainOverlay(is, domain string, e domainxml.External) string {
	snapshot, start := "", ""
	commit := fmt.Sprintf("virsh blockcommit %s %s --base %s --active --pivot --wait", domain, e.Target, e.Base)
	if e.Base == "" {
		commit = fmt.Sprintf("virsh blockcommit, with --base and the index that virsh dumpxml %s shows at %s", domain, e.Noted[0])
	}
	if e.Snapshot != "" {
		snapshot = " (snapshot " + e.Snapshot + ")"
		commit += fmt.Sprintf(", then: virsh snapshot-delete %s %s --metadata (once for all disks)", domain, e.Snapshot)
	}
	if !e.Live {
		start = fmt.Sprintf("start the domain (virsh start %s) and ", domain)
	}
	var above []string
	for _, i := range e.Chain[:e.Depth] {
		above = append(above, i.Name)
	}
	commit += fmt.Sprintf(", and remove what is stale then and must not be committed again (rm %s; virsh pool-refresh <pool>)",
		strings.Join(above, " "))
	return fmt.Sprintf("%s has the overlay %s%s on top of its volume %s, which virtclaim did not make. What the guest has written since "+
		"is there only. To commit it into the volume, %srun: %s. Or adopt it: import it as a virtclaim_disk over that volume and give "+
		"that to the machine",
		is, strings.Join(above, " over "), snapshot, e.Noted[0], start, commit)
}

// External is ErrInUse if an image is part of a disk, on a host, whose chain was changed outside of Terraform: later writes of its machine
// are not in the image. The error has the remedy.
func External(key string, domains []domainxml.Definitions, image volume.Image) error {
	image.Generation, image.Hosts = "", []string{key}
	var refused []error
	for _, d := range domains {
		all, err := domainxml.Externals(d.Stored, d.Live)
		if err != nil {
			return fmt.Errorf("domain %s on host %s: %w", d.Name, key, err)
		}
		for _, disk := range slices.Sorted(maps.Keys(all)) {
			if !all[disk].Cut && has(all[disk], image) { // after a pull, the overlay has all data of its machine
				refused = append(refused, fmt.Errorf("%w: on host %s, %s", ErrInUse, key, ExplainExternal(d.Name, disk, all[disk])))
			}
		}
	}
	return errors.Join(refused...)
}

// CheckCopied is ErrInUse if an image is the volume of another domain's disk on that host that opens a copy of it, as after virsh blockcopy
// --pivot: the guest's later writes are in the copy only, and a machine that got the image would have outdated data. uuid is the machine's
// own.
func CheckCopied(key string, domains []domainxml.Definitions, image volume.Image, uuid string) error {
	if image.AccessMode == volume.ReadShared {
		return nil
	}
	for _, d := range domains {
		if d.UUID == uuid {
			continue
		}
		all, err := domainxml.Externals(d.Stored, d.Live)
		if err != nil {
			return fmt.Errorf("domain %s on host %s: %w", d.Name, key, err)
		}
		for _, disk := range slices.Sorted(maps.Keys(all)) {
			if e := all[disk]; e.Depth < 0 && len(e.Noted) > 0 && e.Noted[0] == image.Name && mayBeBound(image.Binding, e.Binding) {
				return fmt.Errorf("%w: on host %s, %s", ErrInUse, key, ExplainExternal(d.Name, disk, e))
			}
		}
	}
	return nil
}

// mayBeBound reports whether images of one name may be the same storage according to their bindings: a server or a cluster other than that
// of the image may have the same name for other storage.
func mayBeBound(a, b string) bool {
	x, y := volume.ParseBinding(a), volume.ParseBinding(b)
	return x.Claim == "" || y.Claim == "" || x.Namespace == y.Namespace && x.Claim == y.Claim
}

// external is the disk of a use if its chain was changed outside of Terraform.
func (u Use) external() (e domainxml.External, is bool, err error) {
	all, err := domainxml.Externals(u.stored, u.live)
	e, is = all[u.Device.Key]
	return e, is, err
}

// has reports whether the image is part of a disk, or was before the disk was moved.
func has(e domainxml.External, image volume.Image) bool {
	return e.Depth < 0 && slices.Contains(e.Noted, image.Name) || slices.ContainsFunc(e.Chain, func(i volume.Image) bool {
		i.Generation, i.Hosts = "", image.Hosts
		return volume.Overlap(i, image)
	})
}
