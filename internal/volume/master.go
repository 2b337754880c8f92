package volume

// Uses returns the images of a chain, each with the access mode that a machine with the chain has.
func (v Volume) Uses() []Image {
	images := make([]Image, 0, len(v.Images))
	for depth, i := range v.Images {
		if depth > 0 && i.IsDisk() && i.AccessMode == WriteExclusive {
			i.AccessMode = ReadShared // states and domains of earlier versions have the disk's own mode here
		}
		images = append(images, i)
	}
	return images
}

// IsRemote reports whether storage is on the network, also if the host itself has logged in to it.
func (i Image) IsRemote() bool { return i.Type == "network" || iscsiUnit(i).name != "" }

// IsDisk reports whether the image is a disk of a host's storage pool, and not of a claim: below an overlay it is only read, by any number
// of machines.
func (i Image) IsDisk() bool { return i.Type == "file" && i.Binding == "" }

// IsFolder reports whether the image is a folder, which machines share as a filesystem and which is no disk.
func (i Image) IsFolder() bool { return i.Type == "dir" }

// HasInstance reports whether the content of bound storage has an identity of its own: a file is known by its time and length, and a folder
// has any content.
func (i Image) HasInstance() bool { return i.Type != "file" && !i.IsFolder() }
