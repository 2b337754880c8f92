//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lookUp finds a program as a shell does: in the folders of path, or where its name says if that has a slash.
func lookUp(name, path, folder string) (string, error) {
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(name) {
			name = filepath.Join(folder, name)
		}
		return name, checkExecutable(name)
	}
	var refused error
	for _, place := range filepath.SplitList(path) {
		if !filepath.IsAbs(place) {
			place = filepath.Join(folder, place)
		}
		found := filepath.Join(place, name)
		err := checkExecutable(found)
		if err == nil {
			return found, nil
		}
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) && refused == nil {
			refused = err
		}
	}
	if refused != nil {
		return "", refused
	}
	return "", fmt.Errorf("%w in %s", fs.ErrNotExist, path)
}

func checkExecutable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder, and no program", path)
	case info.Mode()&0o111 == 0:
		return fmt.Errorf("%s may not be executed: its mode is %v", path, info.Mode())
	}
	return nil
}

// environment adds what programs expect to what is configured.
func environment(configured map[string]string, home, hostname string) []string {
	all := map[string]string{"PATH": defaultPath, "HOME": home}
	if hostname != "" {
		all["HOSTNAME"] = hostname
	}
	for name, value := range configured {
		all[name] = value
	}
	var variables []string
	for name, value := range all {
		variables = append(variables, name+"="+value)
	}
	return variables
}

func pathOf(configured map[string]string) string {
	if path, found := configured["PATH"]; found {
		return path
	}
	return defaultPath
}
