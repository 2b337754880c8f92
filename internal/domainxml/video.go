package domainxml

import (
	"cmp"

	"libvirt.org/go/libvirtxml"
)

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
		if want.Video == nil && (live.Video == nil || live.isUnmanaged()) {
			return true // libvirt's choice
		}
		l, w := live.card(), Video{Model: want.DefaultVideo.Model}
		if want.Video != nil {
			w = *want.Video
		}
		return l.Model == w.Model && (w.VRAM == 0 || w.VRAM == l.VRAM) && (w.Heads == 0 || w.Heads == l.Heads)
	},
}

// card is the machine's graphics card, whether it is configured or libvirt's choice.
func (m Machine) card() Video {
	card := m.DefaultVideo
	if v := m.Video; v != nil {
		card = Video{cmp.Or(v.Model, card.Model), cmp.Or(v.VRAM, card.VRAM), cmp.Or(v.Heads, card.Heads)}
	}
	return card
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
	if len(d.Devices.Videos) == 0 {
		return nil
	}
	card := d.Devices.Videos[0].Model
	m.DefaultVideo = Video{card.Type, card.VRam, card.Heads}
	if !metadata.wasConfigured("video") {
		return nil
	}
	m.Video, m.DefaultVideo.Model = &Video{Model: card.Type}, ""
	if metadata.wasConfigured("video.vram") {
		m.Video.VRAM, m.DefaultVideo.VRAM = card.VRam, 0
	}
	if metadata.wasConfigured("video.heads") {
		m.Video.Heads, m.DefaultVideo.Heads = card.Heads, 0
	}
	return nil
}
