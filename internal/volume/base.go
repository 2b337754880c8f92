package volume

import (
	"path/filepath"
	"regexp"
)

// BasePrefix starts the names of images that disks of a pool share.
const BasePrefix = "virtclaim-base-"

var baseNames = regexp.MustCompile("^" + BasePrefix + "[0-9a-f]{64}$")

// IsBase tells whether the file of that path is an image that disks share: no disk of its own.
func IsBase(path string) bool { return baseNames.MatchString(filepath.Base(path)) }
