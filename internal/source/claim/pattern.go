package claim

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/client-go/util/jsonpath"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// expand replaces what is in braces by fields of the PersistentVolume, as kubectl's JSONPath does: one pattern fits all volumes of a
// driver. A field that does not fit, as an empty one, is an error, and no other path.
func (q request) expand(attribute, pattern string) (found string, err error) {
	given, err := fill(pattern, q.pv)
	if err == nil {
		found, err = exactPath(given)
	}
	if err != nil && strings.Contains(pattern, "{") {
		err = fmt.Errorf("%q of the PersistentVolume %s: %w (a field is, for example, {.spec.csi.volumeHandle})", pattern, q.pv.Name, err)
	}
	if err != nil {
		return "", source.Errorf(attribute, "%w", err)
	}
	return found, nil
}

// exactPath is source.FilePath of a path that is made of fields, none of which may be empty.
func exactPath(given string) (string, error) {
	path, err := source.FilePath(given)
	if err == nil && path != given {
		err = fmt.Errorf("%q has an empty part", given)
	}
	return path, err
}

func fill(pattern string, object any) (string, error) {
	fields := jsonpath.New("path")
	if err := fields.Parse(pattern); err != nil {
		return "", err
	}
	found, err := fields.FindResults(object)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, values := range found {
		if len(values) != 1 {
			return "", fmt.Errorf("a field has %d values, and must have one", len(values))
		}
		value := reflect.Indirect(values[0])
		if value.Kind() != reflect.String && !value.CanInt() {
			return "", errors.New("a field is neither a text nor a number")
		}
		_, _ = fmt.Fprint(&text, value)
	}
	return text.String(), nil
}
