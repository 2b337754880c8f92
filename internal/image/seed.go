package image

import (
	"encoding/base64"
	"errors"
	"regexp"
	"strings"
)

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

// userData is how user data begin: with the first byte of gzip, or as a text of one or several parts.
var userData = regexp.MustCompile(`^(\x1f|#|(?i:content-type|mime-version):)`)

// CheckUserData refuses user data in base64, which cloud-init ignores in a seed, without a word in the guest.
func CheckUserData(data []byte) error {
	decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(data)))
	if err == nil && userData.Match(decoded) {
		return errors.New("user data in base64 are ignored by cloud-init in a seed: set gzip = false and base64_encode = false in the data source " +
			"cloudinit_config, or leave base64encode() or base64gzip() out")
	}
	return nil
}
