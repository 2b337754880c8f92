// Package newer recognizes records that a newer version of the provider has written: on claims, in domains and on hosts. What has no
// version has the first one, which is all that this one knows. See docs/decisions/0043. Pure
package newer

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
)

// Err is the error of a record of a newer version: it may hold something that this version would take for free, or lose.
var Err = errors.New("a newer version of the provider wrote it: upgrade this one (terraform init -upgrade)")

// Annotation is the name of the annotation with the version of an object in the cluster.
const Annotation = "virtclaim.io/version"

// Version is Err unless the version of a record is that which this provider knows.
func Version(version string) error {
	if version == "" || version == "1" {
		return nil
	}
	return fmt.Errorf("it has the version %.20q: %w", version, Err)
}

// JSON is Version of the field version of an object. What is none is left to who reads it.
func JSON(text []byte) error {
	var head struct {
		Version json.RawMessage `json:"version"`
	}
	if json.Unmarshal(text, &head) != nil {
		return nil //nolint:nilerr // its reader says what is wrong with it
	}
	return Version(string(head.Version))
}

var suffix = regexp.MustCompile(` \(version ([^()]*)\)$`)

// Description is Version of the last words of a description, such as that of a libvirt secret: (version 2).
func Description(text string) error {
	if found := suffix.FindStringSubmatch(text); found != nil {
		return Version(found[1])
	}
	return nil
}
