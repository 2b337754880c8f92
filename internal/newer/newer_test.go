package newer

import (
	"errors"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	for version, refused := range map[string]bool{"": false, "1": false, "2": true, "10": true, "1.1": true, "?": true} {
		err := Version(version)
		if errors.Is(err, Err) != refused {
			t.Errorf("%q: %v", version, err)
		}
		if refused && (!strings.Contains(err.Error(), version) || !strings.Contains(err.Error(), "upgrade")) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestJSON(t *testing.T) {
	for text, refused := range map[string]bool{
		"": false, "[]": false, "{}": false, `{"a": 2}`: false, `{"version": 1}`: false,
		`{"version": 2}`: true, `{"version": "2"}`: true, `{"a": {"version": 1}, "version": 3}`: true,
	} {
		if err := JSON([]byte(text)); errors.Is(err, Err) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestDescription(t *testing.T) {
	for text, refused := range map[string]bool{
		"": false, "identity of the volume a (version 2) in the storage pool ssd": false, "a (version 1)": false, "a version 2": false,
		"a (version 2)": true, "virtclaim binding name=a&version=7 (version 2)": true,
	} {
		if err := Description(text); errors.Is(err, Err) != refused {
			t.Errorf("%s: %v", text, err)
		}
	}
}
