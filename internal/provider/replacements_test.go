package provider_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/lab/suite"
)

// replacement is a row of the guide's table of what is replaced or deleted.
type replacement struct {
	resource, change string
	// plan and apply are what they warn of and refuse, and keeps is what is there afterwards.
	plan, apply, keeps string
	// proofs are the tests of the row.
	proofs []string
}

var replacements = []replacement{
	{
		"virtclaim_disk", "other content in `file`, `url`, `checksum`, `container_image` or `root_filesystem`; `name`, `name_prefix`, `usage_type`, `copy_mode`, `format`; `-replace`",
		"warns: `The content of disk … is lost`; refuses what is no disk or can't be had, and a host that does not answer: `The disk can't be replaced`",
		"deletes the disk, unless a machine has it, and makes the new one; refuses what only the end of a download shows",
		"the disk if the plan refuses it; with `name_prefix` and `create_before_destroy` also if the apply does",
		[]string{"TestAccDisk_JudgedBeforeReplacement", "TestAccDisk_ReplacementByWhatIsThere", "TestSource_Judge", "TestAccDisk_OtherClaimReplacesWithWarning"},
	},
	{
		"virtclaim_disk", "`file.path` in another folder, or a file that is gone", "in place, with a warning: `The file of disk … is not there`; another name of a missing file is refused: `there is no file`", "nothing", "the disk",
		[]string{"TestAccDisk_FileOfAnotherComputer", "TestDigest_FileElsewhere", "TestDigest_MissingInApply"},
	},
	{
		"virtclaim_disk", "`hosts`; `host` to another one of `hosts`", "in place; refuses other folders: `Not a disk of all these hosts`",
		"in place; refuses a host that does not see the file, and to remove one with a machine that has the disk", "the disk",
		[]string{"TestAccDisk_HostsOfSharedFolder", "TestAccDisk_HostsOfSharedFolderAreGuarded", "TestAccDisk_HostsWithFoldersOfTheirOwn", "TestDisk_ReplacedByAnotherHost"},
	},
	{
		"virtclaim_disk", "`host`, where it is not one of `hosts`", "in place; refuses it without its machine, or the machine without it: `A disk of another host`; refuses `A master stays on its host`",
		"copies it while its guest runs, and deletes the former file when it is there; replaces a seed, environment, files or Ignition configuration", "the disk",
		[]string{"TestAccVirtualMachine_DiskMoves", "TestAccVirtualMachine_DiskMovesOff", "TestAccVirtualMachine_DiskMoveRefused"},
	},
	{
		"virtclaim_disk", "the master in `source.volume`", "warns: `The content of disk … is lost`, or `The master of disk … may be another one`", "deletes the overlay or clone, unless a machine has it",
		"the master",
		[]string{"TestAccDisk_OtherClaimReplacesWithWarning"},
	},
	{
		"virtclaim_disk", "destroyed", "warns: `The content of disk … is lost`, and names overlays of it", "deletes it, unless a machine or an overlay has it", "nothing",
		[]string{"TestAccDisk_OtherClaimReplacesWithWarning", "TestRemovable_DisksOfOthers"},
	},
	{
		"virtclaim_kernel", "other content of the source; `host`, `name`, `name_prefix`, `usage_type`; `-replace`", "refuses what is no kernel or can't be had: `The kernel can't be replaced`",
		"deletes both files, unless a domain boots them, and makes the new ones", "the kernel if the plan refuses it",
		[]string{"TestAccKernel_JudgedBeforeReplacement"},
	},
	{
		"virtclaim_volume_content", "other content of the source", "warns: `The volume … is overwritten`; refuses what is no disk or can't be had: `The volume can't be filled`",
		"in place, unless a machine has it; a host copies a complete image, a pod writes what arrives", "the former content until the first byte is written",
		[]string{"TestAccVolumeContent_JudgedBeforeWritten", "TestModel_PlanChange"},
	},
	{
		"virtclaim_volume_content", "another `target`, destroyed", "warns if `erase` is set: `The volume … is erased`", "erases the former volume if `erase` is set", "the data without `erase`",
		[]string{"TestModel_PlanChange", "TestAccVolumeContent"},
	},
	{
		"virtclaim_volume_content", "`-replace`, also with `create_before_destroy`", "warns if `overwrite` is set: `The volume … is overwritten`",
		"writes all again if `overwrite` is set, and otherwise leaves what it has filled as it is", "nothing with `overwrite`",
		[]string{"TestAccVolumeContent_ReplacedBeforeDestroyed"},
	},
	{
		"virtclaim_volume_binding", "another claim", "refuses one that is missing, being deleted or held by another owner", "releases the former claim, unless a machine has it",
		"the former binding if the plan refuses the new one; the content of both claims",
		[]string{"TestVolumeBinding_ReplacementRefusedInPlan", "TestAccVolumeBinding_ReplacementRefusedInPlan"},
	},
	{
		"virtclaim_volume_binding", "of a dynamic volume: `parameters` such as the size, server, image or namespace; another kind of source; `name`",
		"warns: `The content of volume binding … is lost`", "has the volume deleted, unless a machine has it, and another one made", "nothing",
		[]string{"TestVolumeBinding_LossIsWarnedOf", "TestAccVolumeBinding_DynamicLossWarned"},
	},
	{
		"virtclaim_volume_binding", "of a dynamic volume: `hosts`; `-replace` with `create_before_destroy`", "in place, or a new instance of the binding",
		"asks where the volume is; refuses another one, and deletes none", "the volume",
		[]string{"TestServer_Find", "TestAccVolumeBinding_DynamicCreatedEachTime"},
	},
	{
		"virtclaim_volume_binding", "of a dynamic volume: destroyed", "warns: `The content of volume binding … is lost`",
		"has the volume deleted, unless a machine has it; warns if the namespace is gone: `The volume of binding … may be left`", "nothing",
		[]string{"TestVolumeBinding_LossIsWarnedOf", "TestVolumeBinding_DestroyedWithoutNamespace", "TestAccVolumeBinding_DynamicLossWarned"},
	},
	{
		"virtclaim_virtual_machine", "`name`, `machine.type`, `machine.arch`, `machine.domain_type`; `host` where it can't be moved",
		"shows the replacement, and for another `host` warns: `Machine … is replaced, not moved`", "shuts the machine down, removes its definition, and makes the new one",
		"all volumes and disks, which are resources of their own",
		[]string{"TestChanges_OnlyTheNameReplaces", "TestAccVirtualMachine_ReplacementKeepsTargets", "TestAccVirtualMachine_MoveObstacles"},
	},
}

// The table in the guide is that of the rows, whose tests exist, and whose messages are in the code.
func TestReplacements_TableOfGuide(t *testing.T) {
	code := sources(t)
	table := "| resource | change | the plan | the apply | what stays |\n|---|---|---|---|---|\n"
	for _, r := range replacements {
		suite.Has(t, r.proofs...)
		for n, message := range strings.Split(r.plan+r.apply, "`") {
			for part := range strings.SplitSeq(message, "…") {
				if n%2 == 1 && !strings.Contains(code, strings.TrimSpace(part)) {
					t.Errorf("%s, %s: nothing says %q", r.resource, r.change, part)
				}
			}
		}
		table += fmt.Sprintf("| `%s` | %s | %s | %s | %s |\n", r.resource, r.change, r.plan, r.apply, r.keeps)
	}
	guide, err := os.ReadFile("../../templates/guides/changes.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(guide), table) {
		t.Errorf("templates/guides/changes.md does not have this table:\n%s", table)
	}
}
