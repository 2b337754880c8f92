package volume

import (
	"path/filepath"
	"regexp"
)

// BasePrefix is the prefix of the names of images that disks of a pool share.
const BasePrefix = "virtclaim-base-"

var baseNames = regexp.MustCompile("^" + BasePrefix + "[0-9a-f]{64}$")

// IsBase reports whether the path is that of an image that disks share, and not of a disk.
func IsBase(path string) bool { return baseNames.MatchString(filepath.Base(path)) }
