package volume

// Uses are the images of a chain, each under the access mode in which a machine that has the chain uses it.
func (v Volume) Uses() []Image {
	images := make([]Image, 0, len(v.Images))
	for depth, i := range v.Images {
		if depth > 0 && i.IsDisk() && i.AccessMode == WriteExclusive {
			i.AccessMode = ReadShared // also in states and domains from before overlays said so
		}
		images = append(images, i)
	}
	return images
}

// IsRemote tells whether storage is on the network, also when the host itself has logged in to it.
func (i Image) IsRemote() bool { return i.Type == "network" || iscsiUnit(i).name != "" }

// IsDisk tells whether the image is a disk of a host's storage pool, which is no claim's: below an overlay it is only ever
// read, and nothing else limits who may read it.
func (i Image) IsDisk() bool { return i.Type == "file" && i.Binding == "" }
