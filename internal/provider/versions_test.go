package provider

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Examples and guides name the volume image of the version that the changelog begins with, so that a new version takes them along.
func TestSource_VolumeImageIsOfThisVersion(t *testing.T) {
	changelog, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^## .*?(\d+\.\d+\.\d+)`).FindSubmatch(changelog)
	if version == nil {
		t.Fatal("CHANGELOG.md has no version")
	}
	image, seen := regexp.MustCompile(`virtclaim/virtclaim-volume:([\w.]+)`), 0
	for _, folder := range []string{"../../examples", "../../templates", "../../README.md"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || strings.HasSuffix(path, ".svg") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range image.FindAllSubmatch(text, -1) {
				if seen++; string(found[1]) != string(version[1]) {
					t.Errorf("%s names %s, and the changelog %s", path, found[0], version[1])
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if seen == 0 {
		t.Error("no example names the volume image")
	}
}
