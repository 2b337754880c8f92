package image

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
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
		return errors.New("user data in base64 are ignored by cloud-init in a seed: set gzip = false and base64_encode = false in the " +
			"data source cloudinit_config, or leave base64encode() or base64gzip() out")
	}
	return nil
}

// heads are those of texts that cloud-init, or cloudbase-init on Windows, understands, in any case. CR LF does no harm: cloud-init replaces
// it in scripts.
var heads = regexp.MustCompile(`(?i)^\s*(#cloud-config|#!|#include|#cloud-boothook|#upstart-job|#part-handler|##\s*template:\s*jinja` +
	`|#ps1|rem cmd|<powershell|<script)`)

// SuspiciousUserData says why cloud-init ignores user data, in silence; empty if it does not.
func SuspiciousUserData(data []byte) string {
	start := bytes.ToLower(data[:min(len(data), 4096)]) // where cloud-init looks for headers
	if len(data) == 0 || data[0] == 0x1f || bytes.HasPrefix(start, []byte("content-type:")) ||
		bytes.Contains(start, []byte("mime-version:")) {
		return ""
	}
	found := heads.FindSubmatch(data)
	switch {
	case found == nil:
		return "they begin with none of #cloud-config, #! and the other heads that cloud-init knows, so that it ignores them"
	case len(found[0]) != len(found[1]):
		return fmt.Sprintf("there are blanks before %s, so that a script is not run, and older versions of cloud-init ignore all of it",
			found[1])
	}
	return ""
}

var tabs = regexp.MustCompile(`(?m)^ *\t\s*[^\s]`)

// SuspiciousNetworkData says why cloud-init can't read a network configuration, as far as it shows.
func SuspiciousNetworkData(data []byte) string {
	if tabs.Match(data) {
		return "a line is indented with a tab, which YAML does not allow, so that cloud-init ignores all of it"
	}
	return ""
}
