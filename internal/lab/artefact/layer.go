package artefact

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// layerFiles are the files of a layer by their paths, folders without a slash at the end.
type layerFiles map[string]layerFile

type layerFile struct {
	tar.Header
	content []byte
}

// merged are the folders that are links into /usr in this distribution, though its packages have files there: a layer with such a folder
// would replace the link of the layer below.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// readPackages reads the packages with these names, of all that are in debs. Links, owners and modes are kept.
func readPackages(ctx context.Context, debs, names []string) (layerFiles, error) {
	files := layerFiles{}
	for _, deb := range debs {
		if name, _, _ := strings.Cut(filepath.Base(deb), "_"); !slices.Contains(names, name) {
			continue
		}
		archive, err := output(ctx, "", "dpkg-deb", "--fsys-tarfile", deb)
		if err == nil {
			err = files.read(tar.NewReader(bytes.NewReader(archive)))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(deb), err)
		}
	}
	return files, nil
}

func (f layerFiles) read(from *tar.Reader) error {
	for {
		header, err := from.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		content, err := io.ReadAll(from)
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeSymlink && slices.Contains(merged, path.Clean(header.Name)) {
			continue // some distributions' packages have them
		}
		header.Name = inUsr(header.Name)
		if header.Typeflag == tar.TypeLink {
			header.Linkname = inUsr(header.Linkname)
		}
		if header.Name != "." && !leftOut.MatchString(header.Name+"/") {
			f[header.Name] = layerFile{*header, content}
		}
	}
}

// inUsr is a package's path with those links followed.
func inUsr(name string) string {
	name = path.Clean(strings.TrimPrefix(name, "./"))
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(merged, first) {
		return "usr/" + name
	}
	return name
}

// add adds a file of root, with the folders that lead to it.
func (f layerFiles) add(name string, mode int64, content []byte) {
	f[name] = layerFile{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(content))}, content}
	f.addFolders(name)
}

func (f layerFiles) link(name, to string) {
	f[name] = layerFile{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777}}
	f.addFolders(name)
}

func (f layerFiles) addFolders(name string) {
	for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
		if _, has := f[folder]; !has {
			f[folder] = layerFile{Header: tar.Header{Typeflag: tar.TypeDir, Name: folder, Mode: 0o755}}
		}
	}
}

// write writes the layer without dates: the same packages always have the same digest. Hard links are last, after what they lead to.
func (f layerFiles) write(to string) error {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for _, isLink := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(f)) {
			header := f[name].Header
			if (header.Typeflag == tar.TypeLink) != isLink {
				continue
			}
			if header.Typeflag == tar.TypeDir {
				header.Name += "/"
			}
			header.ModTime, header.AccessTime, header.ChangeTime, header.Format = time.Time{}, time.Time{}, time.Time{}, tar.FormatUnknown
			if err := w.WriteHeader(&header); err != nil {
				return err
			}
			if _, err := w.Write(f[name].content); err != nil {
				return err
			}
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, archive.Bytes(), 0o644) //nolint:gosec // as the rest of the cache
}

// setUpBase does what the packages' scripts do where they are installed, for the base.
func (f layerFiles) setUpBase() {
	for _, folder := range merged {
		f.link(folder, "usr/"+folder)
	}
	for _, list := range []string{"passwd", "group"} {
		f.add("etc/"+list, 0o644, f["usr/share/base-passwd/"+list+".master"].content)
	}
	f.link("usr/bin/sh", "dash")
}

// setUpWeb is that for the web server.
func (f layerFiles) setUpWeb() {
	f.link("etc/nginx/sites-enabled/default", "/etc/nginx/sites-available/default")
	f.add("var/www/html/index.html", 0o644, []byte(WebPage))
}

// setUpDatabase is that for the database, with its own user.
func (f layerFiles) setUpDatabase(base layerFiles) {
	f.add("etc/passwd", 0o644, append(slices.Clone(base["etc/passwd"].content), "postgres:x:101:103::/var/lib/postgresql:/bin/sh\n"...))
	f.add("etc/group", 0o644, append(slices.Clone(base["etc/group"].content), "postgres:x:103:\n"...))
	f.add(strings.TrimPrefix(DatabaseEntrypoint, "/"), 0o755, databaseScript)
	f.addFolders("var/lib/postgresql/data/.")
	for _, folder := range []string{"var/lib/postgresql", "var/lib/postgresql/data"} {
		file := f[folder]
		file.Uid, file.Gid = 101, 103
		f[folder] = file
	}
}
