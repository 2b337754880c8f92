package claim_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
)

// The guide in which the table of PersistentVolumes is, and the lines around it.
const (
	guide      = "../../../templates/guides/persistent-volumes.md"
	tableBegin = "<!-- begin: generated from internal/source/claim/testdata -->\n"
	tableEnd   = "<!-- end -->\n"
)

// Each manifest is written after a document, which it names.
func TestResolve_ManifestsNameTheirSource(t *testing.T) {
	manifests := slices.Concat(manifestsIn(t, "testdata/*.yaml"), manifestsIn(t, "testdata/refused/*.yaml"))
	if len(manifests) < 70 {
		t.Errorf("there are %d manifests", len(manifests))
	}
	for _, file := range manifests {
		if head(t, file)["source"] == "" {
			t.Errorf("%s has no line # source: …", file)
		}
	}
}

// TestResolve_Table compares the guide's table of PersistentVolumes with what becomes of those manifests that have a row in it.
func TestResolve_Table(t *testing.T) {
	var rows []string
	for _, pattern := range []string{"testdata/*.yaml", "testdata/refused/*.yaml"} {
		eachManifest(t, pattern, func(t *testing.T, base string, need claim.Need, found source.Resolved, err error) {
			t.Helper()
			is := head(t, base+".yaml")
			if is["row"] == "" {
				return
			}
			answer := "not: " + shortened.Replace(fmt.Sprint(err))
			if err == nil {
				answer = "`" + found.Volume.Images[0].URI() + "`"
			}
			label := is["row"]
			if strings.HasPrefix(is["source"], "https://") {
				label = fmt.Sprintf("[%s](%s)", label, is["source"])
			}
			rows = append(rows, fmt.Sprintf("| %s | %s | %s | %s |\n", label, is["mode"], optionsOf(need.Options), answer))
		})
	}
	slices.SortFunc(rows, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	text, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, hasBegin := bytes.Cut(text, []byte(tableBegin))
	_, after, hasEnd := bytes.Cut(rest, []byte(tableEnd))
	if !hasBegin || !hasEnd {
		t.Fatalf("%s has no place for the table", guide)
	}
	table := tableBegin + "\n| PersistentVolume | volumeMode | the source says | what QEMU opens |\n|---|---|---|---|\n" +
		strings.Join(rows, "") + "\n" + tableEnd
	compare(t, guide, string(before)+table+string(after))
}

// shortened removes what all errors of these manifests have in common.
var shortened = strings.NewReplacer("PersistentVolumeClaim vms/golden", "claim", "PersistentVolume pv-golden", "volume",
	"https://registry.terraform.io/providers/virtclaim/virtclaim/latest/docs/guides/", "guides/")

func optionsOf(o claim.Options) string {
	var all []string
	add := func(is bool, format string, value any) {
		if is {
			all = append(all, fmt.Sprintf("`"+format+"`", value))
		}
	}
	add(o.ForceBlock, "force_block = %v", true)
	add(o.MountPath != "", "mount_path = %q", o.MountPath)
	add(o.Attach, "attach = %v", true)
	add(o.DevicePath != "", "device_path = %q", o.DevicePath)
	add(o.SharedFolder, "shared_folder = %v", true)
	add(len(o.Monitors) > 0, "monitors = %q", o.Monitors)
	add(o.User != "", "uid = %s", o.User)
	add(o.Group != "", "gid = %s", o.Group)
	return strings.Join(all, ", ")
}

func manifestsIn(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

var headLine = regexp.MustCompile(`(?m)^# (row|source): (.*)$|^  volume(Mode): (.*)$`)

// head are the row and the source in the comments of a manifest, and its volumeMode as mode.
func head(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range headLine.FindAllStringSubmatch(string(text), -1) {
		found[strings.ToLower(m[1]+m[3])] = m[2] + m[4]
	}
	return found
}
