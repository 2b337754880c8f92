package domainxml

import (
	"encoding/xml"
	"fmt"
	"slices"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// Unnoted are the disks, by key and sorted, that a running domain has as want says, and whose images it does not note: it was
// started, or given another chain, without virtclaim. A disk is left out when the definition that was stored before notes another
// volume under the same name: the guest may have opened that one.
func Unnoted(live string, was, want Machine) ([]string, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return nil, err
	}
	is, mark, err := parse(d)
	if err != nil {
		return nil, err
	}
	var keys []string
	for key, disk := range want.Disks {
		images := disk.Volume.Images
		isOpen := slices.EqualFunc(images, is.Disks[key].Volume.Images, func(a, b volume.Image) bool { return a.Name == b.Name })
		if len(images) > 0 && isOpen && !mark.disk(key).notes(images) && !was.Disks[key].isRemade(disk) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys, nil
}

// notes tells whether it has the identities of these images.
func (m diskMark) notes(images []volume.Image) bool {
	return slices.EqualFunc(m.Images, images, func(m imageMark, i volume.Image) bool {
		return m.Name == i.Name && (m.Generation != "" || i.Generation == "")
	})
}

// LiveMark is virtclaim's metadata for a running domain that has the disks of those keys, or is about to be plugged them: what it has
// noted of the others stays.
func LiveMark(live string, want Machine, keys []string) (string, error) {
	d, err := Unmarshal(live)
	if err != nil {
		return "", err
	}
	mark, err := parseMark(d)
	if err != nil {
		return "", err
	}
	full := newMachineMark(want)
	if mark.Phase == "" {
		mark.CPU = unknownCPU
		mark.Asked = everything // all that it runs with goes on to be read
	}
	mark.Mark, mark.UUID, mark.Type = full.Mark, d.UUID, full.Type
	mark.Disks = slices.DeleteFunc(mark.Disks, func(m diskMark) bool { return slices.Contains(keys, m.Key) })
	for _, m := range full.Disks {
		if slices.Contains(keys, m.Key) {
			mark.Disks = append(mark.Disks, m)
		}
	}
	text, err := xml.Marshal(mark)
	if err != nil {
		return "", fmt.Errorf("write the metadata of domain %s: %w", d.Name, err)
	}
	return string(text), nil
}
