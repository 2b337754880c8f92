package artefact

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// Applications are layers of container images with a distribution's programs, as tar archives. The images are Base with Web or Database over it.
type Applications struct {
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

// The packages of each layer, which the libraries that they depend on are added to. What else they depend on sets them up where a distribution is installed.
var (
	basePackages     = []string{"base-files", "base-passwd", "dash"}
	webPackages      = []string{"nginx", "nginx-common"}
	databasePackages = []string{"postgresql-15", "postgresql-client-15", "tzdata"}
)

// library matches, in apt-cache's list, a library that a package depends on. The largest, a compiler, is used by a plug-in only, which is left out.
var (
	library = regexp.MustCompile(`(?m)^ *\|?(?:Pre)?Depends: (lib[a-z0-9.+-]*|zlib1g)$`)
	leftOut = regexp.MustCompile(`^usr/share/(doc|man|locale|lintian|bug|vim|apport)/|/llvmjit|/bitcode/`)
)

const compiler = "libllvm14"

func packedApplications(dir string) Applications {
	in := func(name string) string { return filepath.Join(dir, name) }
	return Applications{Base: in("base.tar"), Web: in("web.tar"), Database: in("database.tar"), Tools: in("tools")}
}

// PackApplications returns the layers. Their packages are downloaded but not installed, and they are kept until their folder is removed: its path does not
// contain versions.
func PackApplications(ctx context.Context, cache string, log func(format string, args ...any)) (Applications, error) {
	hash := shortHash(fmt.Appendf(nil, "1 %q %q %q %q %q %q", basePackages, webPackages, databasePackages, leftOut, WebPage, databaseScript))
	dir, err := folder(ctx, cache, "applications-"+hash, log, func(ctx context.Context, dir string) error { return packApplications(ctx, dir, log) })
	if err != nil {
		return Applications{}, fmt.Errorf("pack a web server and a database: %w", err)
	}
	return packedApplications(dir), nil
}

func packApplications(ctx context.Context, dir string, log func(string, ...any)) error {
	work := filepath.Join(dir, "packages")
	if err := os.Mkdir(work, 0o700); err != nil {
		return err
	}
	var base, web, database []string
	debs, err := fetch(ctx, work, "a web server and a database", log, func(ctx context.Context) (_ []string, err error) {
		base, web, database, err = layerPackages(ctx, work)
		return slices.Concat(base, web, database), err
	})
	if err != nil {
		return err
	}
	to := packedApplications(dir)
	files, err := readPackages(ctx, work, debs, base)
	if err != nil {
		return err
	}
	files.addUsers()
	if err := files.write(to.Base); err != nil {
		return err
	}
	users := files
	if files, err = readPackages(ctx, work, debs, web); err != nil {
		return err
	}
	files.setUpWeb()
	if err := files.write(to.Web); err != nil {
		return err
	}
	if files, err = readPackages(ctx, work, debs, database); err != nil {
		return err
	}
	files.setUpDatabase(users)
	if err := files.write(to.Database); err != nil {
		return err
	}
	return finishApplications(ctx, to, work)
}

// finishApplications unpacks the tools. They are used with the rights of whoever unpacks them.
func finishApplications(ctx context.Context, a Applications, work string) error {
	if err := os.Mkdir(a.Tools, 0o755); err != nil { //nolint:gosec // it has a distribution's files only
		return err
	}
	for _, layer := range []string{a.Base, a.Database} {
		if _, err := output(ctx, a.Tools, "tar", "--extract", "--no-same-owner", "--file", layer); err != nil {
			return err
		}
	}
	return os.RemoveAll(work)
}

// layerPackages divides the packages and their libraries among the layers.
func layerPackages(ctx context.Context, dir string) (base, web, database []string, err error) {
	var sets [3]map[string]bool
	for n, names := range [][]string{basePackages, webPackages, databasePackages} {
		if sets[n], err = withLibraries(ctx, dir, names); err != nil {
			return nil, nil, nil, err
		}
	}
	for name := range sets[1] {
		if sets[2][name] {
			sets[0][name] = true
		}
	}
	inBase := func(name string, _ bool) bool { return sets[0][name] }
	maps.DeleteFunc(sets[1], inBase)
	maps.DeleteFunc(sets[2], inBase)
	return slices.Sorted(maps.Keys(sets[0])), slices.Sorted(maps.Keys(sets[1])), slices.Sorted(maps.Keys(sets[2])), nil
}

// withLibraries adds the libraries that packages depend on, and those that these depend on.
func withLibraries(ctx context.Context, dir string, names []string) (map[string]bool, error) {
	all := map[string]bool{}
	for len(names) > 0 {
		for _, name := range names {
			all[name] = true
		}
		list, err := output(ctx, dir, "apt-cache", append([]string{"depends", "--important"}, names...)...)
		if err != nil {
			return nil, err
		}
		names = nil
		for _, found := range library.FindAllSubmatch(list, -1) {
			if name := string(found[1]); !all[name] && name != compiler {
				names = append(names, name)
			}
		}
	}
	return all, nil
}
