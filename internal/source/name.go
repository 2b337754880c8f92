package source

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"
)

// isVisible tells whether a text has only what can be seen in a plan. A line break or a control character in a name is a
// mistake or an attack, and XML can't hold most of them.
func isVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsGraphic(r) })
}

// CheckName checks one part of a longer name, such as a pool or an image: it must not have what ends a part there.
func CheckName(s string) error {
	switch {
	case s == "":
		return errors.New("it is empty")
	case strings.ContainsAny(s, "/@:") || !isVisible(s) || s == "." || s == "..":
		return fmt.Errorf("%q is no name: it must not have a slash, an @, a colon or a control character", s)
	}
	return nil
}

// CheckUser checks the name of a user.
func CheckUser(s string) error {
	if s == "" || !isVisible(s) {
		return fmt.Errorf("%q is no name of a user: it must not be empty or have a control character", s)
	}
	return nil
}

// Path checks an absolute path, and cleans it of what does not change where it leads.
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

// FilePath is Path for what is no folder.
func FilePath(s string) (string, error) {
	if strings.HasSuffix(s, "/") {
		return "", fmt.Errorf("%q is the path of a folder: it must lead to the image itself", s)
	}
	return Path(s)
}

// CheckURLPath checks the decoded path of a URL, which stays as it is: servers may tell // from /.
func CheckURLPath(s string) error {
	_, err := Path(s)
	return err
}

// maxExport is the length of the longest string of the NBD protocol, in bytes.
const maxExport = 4096

// CheckExport checks the name of an NBD export, which may be nearly anything, also empty.
func CheckExport(s string) error {
	if len(s) > maxExport || !isVisible(s) {
		return fmt.Errorf("%.40q is no name of an NBD export: it must have no control character and at most %d bytes", s, maxExport)
	}
	return nil
}

func hasParent(s string) bool { return slices.Contains(strings.Split(s, "/"), "..") }
