package domainxml

import "libvirt.org/go/libvirtxml"

// Video is a machine's graphics card.
type Video struct {
	Model string
	// VRAM, in KiB, and Heads are 0 where libvirt chooses.
	VRAM, Heads uint
}

var video = part{
	name: "video", single: true, apply: applyVideo, parse: parseVideo,
	settings: []setting{
		{"video", func(m Machine) bool { return m.Video != nil }},
		{"video.vram", func(m Machine) bool { return m.Video != nil && m.Video.VRAM != 0 }},
		{"video.heads", func(m Machine) bool { return m.Video != nil && m.Video.Heads != 0 }},
	},
	same: func(live, want Machine) bool {
		l, w := live.Video, want.Video
		if l == nil || w == nil {
			return l == w || w == nil && live.isUnmanaged()
		}
		return l.Model == w.Model && (w.VRAM == 0 || w.VRAM == l.VRAM) && (w.Heads == 0 || w.Heads == l.Heads)
	},
}

// applyVideo keeps the card that libvirt adds to a machine with a display unless a card is configured.
func applyVideo(d *libvirtxml.Domain, m Machine) {
	var now Machine
	_ = parseVideo(d, metadataOf(d), &now)
	switch want := m.Video; {
	case want == nil && now.Video == nil, want != nil && now.Video != nil && *want == *now.Video:
	case want == nil:
		d.Devices.Videos = d.Devices.Videos[1:]
	default:
		card := libvirtxml.DomainVideo{Model: libvirtxml.DomainVideoModel{Type: want.Model, VRam: want.VRAM, Heads: want.Heads}}
		if len(d.Devices.Videos) == 0 {
			d.Devices.Videos = []libvirtxml.DomainVideo{card}
		}
		d.Devices.Videos[0] = card
	}
}

func parseVideo(d *libvirtxml.Domain, metadata machineMetadata, m *Machine) error {
	if len(d.Devices.Videos) == 0 || !metadata.wasConfigured("video") {
		return nil
	}
	card := d.Devices.Videos[0].Model
	m.Video = &Video{Model: card.Type}
	if metadata.wasConfigured("video.vram") {
		m.Video.VRAM = card.VRam
	}
	if metadata.wasConfigured("video.heads") {
		m.Video.Heads = card.Heads
	}
	return nil
}
