package image

// Seed is the data that cloud-init reads at a guest's first boot (NoCloud,
// https://docs.cloud-init.io/en/latest/reference/datasources/nocloud.html).
type Seed struct {
	// UserData and MetaData are always in the image, even if empty; NetworkConfig only if it is not empty.
	UserData, MetaData, NetworkConfig []byte
}

// ISO returns the seed as the image of a CD-ROM.
func (s Seed) ISO() ([]byte, error) {
	files := []ISOFile{{Name: "user-data", Content: s.UserData}, {Name: "meta-data", Content: s.MetaData}}
	if len(s.NetworkConfig) > 0 {
		files = append(files, ISOFile{Name: "network-config", Content: s.NetworkConfig})
	}
	return ISO("cidata", files...)
}
