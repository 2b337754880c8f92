package image_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
)

// dockerConfig has Docker use that configuration, and only the programs beside it.
func dockerConfig(t *testing.T, text string) (file string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	t.Setenv("DOCKER_CONFIG", dir)
	t.Setenv("PATH", dir)
	file = filepath.Join(dir, "config.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDockerConfig_Unreadable(t *testing.T) {
	f := &fake{}
	f.push(nil, tarred(t, plain("disk/d", disk(10_000))))
	ref := at(t, f)
	registry, _, _ := strings.Cut(ref, "/")
	for text, want := range map[string]string{
		`{"auths": {"quay.io": {"auth": "hunter2"}`:            "is no valid JSON",
		`{"auths": {"` + registry + `": {"auth": "hunter2"}}}`: "an entry that can't be read",
		`{"credsStore": 1}`: "is no valid JSON",
	} {
		file := dockerConfig(t, text)
		_, err := pull(t, image.Container{Reference: ref})
		if err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		hidesSecrets(t, err)
	}
}

func TestDockerConfig_Podman(t *testing.T) {
	file := dockerConfig(t, "{")
	auth := filepath.Join(filepath.Dir(file), "auth.json")
	if err := os.Rename(file, auth); err != nil {
		t.Fatal(err)
	}
	t.Setenv("REGISTRY_AUTH_FILE", auth)
	f := &fake{}
	f.push(nil)
	if _, err := pull(t, image.Container{Reference: at(t, f)}); err == nil || !strings.Contains(err.Error(), auth+" is no valid JSON") {
		t.Errorf("got %v", err)
	}
}

// Docker Desktop leaves its helper's name in configurations that are used elsewhere.
func TestDockerConfig_HelperIsMissing(t *testing.T) {
	want := disk(10_000)
	f := &fake{}
	f.push(nil, tarred(t, plain("disk/d", want)))
	var seen []string
	public, private := at(t, f), at(t, guarded(f, &seen))
	file := dockerConfig(t, `{"credsStore": "desktop"}`)
	if got, err := pull(t, image.Container{Reference: public}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	_, err := pull(t, image.Container{Reference: private})
	if err == nil || !strings.Contains(err.Error(), "docker-credential-desktop, which "+file+" names, is not installed") {
		t.Errorf("got %v", err)
	}
}

// The helper of the registry is asked although the one for all others is missing.
func TestDockerConfig_HelperOfRegistry(t *testing.T) {
	want := disk(10_000)
	f := &fake{}
	f.push(nil, tarred(t, plain("disk/d", want)))
	var seen []string
	ref := at(t, guarded(f, &seen))
	registry, _, _ := strings.Cut(ref, "/")
	file := dockerConfig(t, `{"credsStore": "desktop", "credHelpers": {"`+registry+`": "works"}}`)
	helper := filepath.Join(filepath.Dir(file), "docker-credential-works")
	if err := os.WriteFile(helper, []byte("#!/bin/sh\necho '{\"Username\":\"me\",\"Secret\":\"hunter2\"}'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := pull(t, image.Container{Reference: ref}); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}
