package source

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// isVisible reports whether a text has only characters that a plan can show. A line break or a control character in a name is a mistake or
// an attack, and most of them are invalid in XML.
func isVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) })
}

// CheckName checks one part of a longer name, such as a pool or an image: it must not have the separators of such names.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case strings.ContainsAny(s, "/@:") || !isVisible(s) || s == "." || s == "..":
		return fmt.Errorf("%q is no name: it must not have a slash, an @, a colon or a control character", s)
	}
	return nil
}

// CheckUser checks a user name.
func CheckUser(s string) error {
	if s == "" || !isVisible(s) {
		return fmt.Errorf("%q is no name of a user: it must not be empty or have a control character", s)
	}
	return nil
}

// Path checks an absolute path, and returns it in its shortest form.
func Path(s string) (string, error) {
	switch {
	case !strings.HasPrefix(s, "/"):
		return "", fmt.Errorf("%q is no absolute path: it must begin with a slash", s)
	case !isVisible(s):
		return "", fmt.Errorf("%q has a control character, which no path here may have", s)
	case hasParent(s):
		return "", fmt.Errorf("%q leads upwards: a path must not have .. in it", s)
	}
	return path.Clean(s), nil
}

// FilePath is Path for files and devices: it refuses folders.
func FilePath(s string) (string, error) {
	if strings.HasSuffix(s, "/") {
		return "", fmt.Errorf("%q is the path of a folder: it must lead to the image itself", s)
	}
	return Path(s)
}

// CheckURLPath checks the decoded path of a URL, which is not cleaned: for servers, // and / may differ.
func CheckURLPath(s string) error {
	_, err := Path(s)
	return err
}

// maxExport is the maximal length of a string in the NBD protocol, in bytes.
const maxExport = 4096

// CheckExport checks the name of an NBD export, which may be empty and have nearly all characters.
func CheckExport(s string) error {
	if len(s) > maxExport || !isVisible(s) {
		return fmt.Errorf("%.40q is no name of an NBD export: it must have no control character and at most %d bytes", s, maxExport)
	}
	return nil
}

func hasParent(s string) bool { return slices.Contains(strings.Split(s, "/"), "..") }
