package artefact

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// ApplicationLayers are layers of container images with a distribution's programs, as tar archives. The images are Base with Web or
// Database over it.
type ApplicationLayers struct {
	// Base has a shell, users, and the libraries that both need.
	Base string
	// Web has nginx with its page WebPage.
	Web string
	// Database has PostgreSQL, with the script DatabaseEntrypoint.
	Database string
	// Tools is a folder with the files of Base and Database.
	Tools string
}

// WebPage is what the web server answers with.
const WebPage = "This page is from a container image.\n"

// DatabaseEntrypoint is the entrypoint of the database's image, which its user DatabaseUser runs.
const (
	DatabaseEntrypoint = "/usr/local/bin/entrypoint.sh"
	DatabaseUser       = "postgres"
)

//go:embed database.sh
var databaseScript []byte

// The packages of each layer, which the libraries that they depend on are added to. What else they depend on sets them up where a
// distribution is installed.
var (
	basePackages     = []string{"base-files", "base-passwd", "dash"}
	webPackages      = []string{"nginx", "nginx-common"}
	databasePackages = []string{"tzdata"} // and those of the distribution's version
)

// library matches packages with libraries. The largest, a compiler, is used by a plug-in only, which is left out.
var (
	library        = regexp.MustCompile(`^(lib|zlib1g$)`)
	compiler       = regexp.MustCompile(`^libllvm`)
	databaseServer = regexp.MustCompile(`^postgresql-([0-9]+)$`)
	leftOut        = regexp.MustCompile(`^usr/share/(doc|man|locale|lintian|bug|vim|apport)/|/llvmjit|/bitcode/`)
)

func packedApplications(dir string) ApplicationLayers {
	in := func(name string) string { return filepath.Join(dir, name) }
	return ApplicationLayers{Base: in("base.tar"), Web: in("web.tar"), Database: in("database.tar"), Tools: in("tools")}
}

// Applications returns the layers. Their packages are downloaded but not installed, and they are kept until their folder is removed: its
// path does not contain versions.
func Applications(ctx context.Context, cache string, log func(format string, args ...any)) (ApplicationLayers, error) {
	hash := shortHash(fmt.Appendf(nil, "2 %q %q %q %q %q %q %q", library, basePackages, webPackages, databasePackages, leftOut, WebPage,
		databaseScript))
	dir, err := folder(ctx, cache, "applications-"+hash, log,
		func(ctx context.Context, dir string) error { return packApplications(ctx, dir, log) })
	if err != nil {
		return ApplicationLayers{}, fmt.Errorf("pack a web server and a database: %w", err)
	}
	return packedApplications(dir), nil
}

func packApplications(ctx context.Context, dir string, log func(string, ...any)) error {
	work := filepath.Join(dir, "packages")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	var names [3][]string
	debs, err := fetch(ctx, work, "a web server and a database", log, func(ctx context.Context) (_ []string, err error) {
		names, err = layerPackages(ctx)
		return slices.Concat(names[:]...), err
	})
	if err != nil {
		return err
	}
	var layers [3]layerFiles
	for n := range layers {
		if layers[n], err = readPackages(ctx, debs, names[n]); err != nil {
			return err
		}
	}
	layers[0].setUpBase()
	layers[1].setUpWeb()
	layers[2].setUpDatabase(layers[0])
	to := packedApplications(dir)
	for n, archive := range []string{to.Base, to.Web, to.Database} {
		if err := layers[n].write(archive); err != nil {
			return err
		}
	}
	return errors.Join(to.unpackTools(ctx), os.RemoveAll(work))
}

// unpackTools unpacks the tools for the user that runs this process, who may not be root.
func (a ApplicationLayers) unpackTools(ctx context.Context) error {
	if err := os.Mkdir(a.Tools, 0o755); err != nil { //nolint:gosec // it has a distribution's files only
		return err
	}
	for _, layer := range []string{a.Base, a.Database} {
		if _, err := output(ctx, a.Tools, "tar", "--extract", "--no-same-owner", "--file", layer); err != nil {
			return err
		}
	}
	return nil
}

// PSQL is the beginning of a command that runs the database's client. Its libraries are not where its loader looks for them.
func (a ApplicationLayers) PSQL() ([]string, error) {
	program, err := findFile(a.Tools, "usr/lib/postgresql/*/bin/psql")
	if err != nil {
		return nil, err
	}
	loader, err := findFile(a.Tools, "usr/lib64/ld-linux-*.so.2", "usr/lib/ld-linux-*.so.1")
	if err != nil {
		return nil, err
	}
	libc, err := findFile(a.Tools, "usr/lib/*/libc.so.6")
	return []string{loader, "--library-path", filepath.Dir(libc), program}, err
}

// layerPackages divides the packages and their libraries among the layers.
func layerPackages(ctx context.Context) (layers [3][]string, err error) {
	database, err := Dependencies(ctx, []string{"postgresql"}, databaseServer.MatchString)
	if err != nil {
		return layers, err
	}
	for _, name := range database {
		if version := databaseServer.FindStringSubmatch(name); version != nil {
			database = append(slices.Clone(databasePackages), name, "postgresql-client-"+version[1])
			break
		}
	}
	for n, names := range [][]string{basePackages, webPackages, database} {
		layers[n], err = Dependencies(ctx, names,
			func(name string) bool { return library.MatchString(name) && !compiler.MatchString(name) })
		if err != nil {
			return layers, err
		}
	}
	for _, name := range layers[1] {
		if slices.Contains(layers[2], name) && !slices.Contains(layers[0], name) {
			layers[0] = append(layers[0], name)
		}
	}
	for n := range layers[1:] {
		layers[n+1] = slices.DeleteFunc(layers[n+1], func(name string) bool { return slices.Contains(layers[0], name) })
	}
	return layers, nil
}
