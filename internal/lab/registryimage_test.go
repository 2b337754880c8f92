package lab

import (
	"archive/tar"
	"bytes"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func TestImageSpec_RunsItsPrograms(t *testing.T) {
	layer := ImageLayer{Files: map[string][]byte{"etc/note": []byte("note")}, Programs: map[string][]byte{"/bin/serve": []byte("program")}}
	content, err := ImageSpec{Layers: []ImageLayer{layer}, Entrypoint: []string{"/bin/serve", "-v"}}.build()
	if err != nil {
		t.Fatal(err)
	}
	config, err := content.(v1.Image).ConfigFile()
	if err != nil || !slices.Equal(config.Config.Entrypoint, []string{"/bin/serve", "-v"}) {
		t.Errorf("it runs %q, %v", config.Config.Entrypoint, err)
	}
	archive, err := layer.archive()
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]int64{}
	reader := tar.NewReader(bytes.NewReader(archive))
	for header, err := reader.Next(); err == nil; header, err = reader.Next() {
		modes[header.Name] = header.Mode
	}
	if modes["bin/serve"] != 0o755 || modes["etc/note"] != 0o644 {
		t.Errorf("the modes are %v", modes)
	}
}
