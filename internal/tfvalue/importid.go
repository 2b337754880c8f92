package tfvalue

import (
	"fmt"
	"strings"
)

// ImportID splits an import id of the given shape, such as "<host>/<name>", into its parts. No part may be empty.
func ImportID(id, shape string) ([]string, error) {
	parts := strings.Split(id, "/")
	if len(parts) != strings.Count(shape, "/")+1 {
		return nil, fmt.Errorf("the import id %q is not of the shape %s", id, shape)
	}
	for _, p := range parts {
		if p == "" {
			return nil, fmt.Errorf("the import id %q has an empty part; its shape is %s", id, shape)
		}
	}
	return parts, nil
}
