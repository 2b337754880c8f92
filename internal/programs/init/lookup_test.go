//go:build linux

package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func writeFile(t *testing.T, path string, content []byte, mode fs.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLookUp(t *testing.T) {
	root := t.TempDir()
	first, second := filepath.Join(root, "first"), filepath.Join(root, "second")
	plain := writeFile(t, filepath.Join(first, "both"), nil, 0o644)
	program := writeFile(t, filepath.Join(second, "both"), nil, 0o755)
	writeFile(t, filepath.Join(first, "plain"), nil, 0o644)
	writeFile(t, filepath.Join(first, "folder", "file"), nil, 0o644)
	path := "/missing:" + plain + ":" + first + ":" + second
	for name, want := range map[string]string{"both": program, program: program, "./both": program, "../second/both": program} {
		if got, err := lookUp(name, path, second); err != nil || got != want {
			t.Errorf("%s is %s: %v", name, got, err)
		}
	}
	for name, want := range map[string]string{"plain": "may not be executed", "folder": "is a folder", first: "is a folder", "./other": "no such file"} {
		if got, err := lookUp(name, path, second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s is %s: %v", name, got, err)
		}
	}
	if _, err := lookUp("other", path, second); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestEnvironment(t *testing.T) {
	got := environment(map[string]string{"HOME": "/srv", "A": "b=c"}, "/root", "web")
	slices.Sort(got)
	if want := []string{"A=b=c", "HOME=/srv", "HOSTNAME=web", "PATH=" + defaultPath}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := pathOf(map[string]string{"PATH": "/a"}); got != "/a" {
		t.Error(got)
	}
}

func TestExplainRefusal(t *testing.T) {
	folder := t.TempDir()
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	const machine, s390x = 18, 22
	program[machine] = s390x
	for _, try := range []struct {
		content []byte
		refusal error
		want    string
	}{
		{program, unix.ENOEXEC, "is for s390x, and this machine is " + runtime.GOARCH},
		{[]byte("#! /bin/bash -e\n"), unix.ENOENT, "needs /bin/bash"},
		{[]byte("text"), unix.ENOEXEC, "is no program"},
		{nil, unix.EACCES, "permission denied"},
	} {
		path := writeFile(t, filepath.Join(folder, "program"), try.content, 0o755)
		if err := explainRefusal(path, try.refusal); !strings.Contains(err.Error(), try.want) {
			t.Errorf("%v, and should say %q", err, try.want)
		}
	}
}
