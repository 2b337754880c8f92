package disk

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// maxFiles is how large an image of files is at most. Inline content is in the state, which would become slow.
const maxFiles = 16 << 20

type filesModel struct {
	Label            types.String      `tfsdk:"label"`
	Content          types.Map         `tfsdk:"content"`
	ContentWO        types.Map         `tfsdk:"content_wo"`
	ContentWOVersion types.Int64       `tfsdk:"content_wo_version"`
	Secrets          map[string]keyRef `tfsdk:"secrets"`
}

// keyRef is a key of a Kubernetes secret.
type keyRef struct {
	tfvalue.SecretRef
	Key types.String `tfsdk:"key"`
}

var isoLabel = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9_.-]{1,%d}$`, image.MaxISOLabel))

func filesAttribute() schema.Attribute {
	beside := func(name string) path.Expression { return path.MatchRelative().AtParent().AtName(name) }
	key := maps.Clone(tfvalue.SecretRefAttribute("").(schema.SingleNestedAttribute).Attributes)
	key["key"] = schema.StringAttribute{Required: true, MarkdownDescription: "The key in the secret. Its value may have any bytes."}
	return schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "A small read-only ISO image of files, for a machine's disk with `device = \"cdrom\"`: a ConfigDrive, " +
			"`Autounattend.xml` of Windows, vendor data of cloud-init, for example. The same label and files make the same bytes. Names " +
			"keep their case (Joliet). At least one file, and at most 16 MiB. Paths have `/` between folders and at most 120 characters, " +
			"in 8 names at most; each name has at most 64 printable characters other than `* : ; ? \\`, and no dot or space at its end. " +
			"Changed content makes a new disk, which is inserted while the machine runs. All users that can read the storage pool of the " +
			"host, or the CD-ROM in the guest, can read all of it.",
		Attributes: map[string]schema.Attribute{
			"label": schema.StringAttribute{
				Required: true,
				MarkdownDescription: "The volume label by which programs find the image, such as `config-2`, `cidata`, `combustion`: at " +
					"most 16 letters, digits and `_ . -`. Linux tells the case apart.",
				Validators: []validator.String{stringvalidator.RegexMatches(isoLabel, "must be 1 to 16 letters, digits and _ . -")},
			},
			"content": schema.MapAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Texts by their paths on the image, such as `openstack/latest/user_data`.",
				Validators:          []validator.Map{mapvalidator.NoNullValues()},
			},
			"content_wo": schema.MapAttribute{
				Optional: true, WriteOnly: true, ElementType: types.StringType,
				MarkdownDescription: "More texts by their paths, write-only (Terraform 1.11 or newer): never in state or plan. Change " +
					"`content_wo_version` with them.",
				Validators: []validator.Map{mapvalidator.NoNullValues(), mapvalidator.AlsoRequires(beside("content_wo_version"))},
			},
			"content_wo_version": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Any number; changing it makes a new disk.",
				Validators: []validator.Int64{int64validator.AlsoRequires(beside("content_wo"))},
			},
			"secrets": schema.MapNestedAttribute{
				Optional: true, NestedObject: schema.NestedAttributeObject{Attributes: key},
				MarkdownDescription: "More files by their paths, each the value of a key of a Kubernetes secret. Another version of the " +
					"secret makes a new disk.",
				Validators: []validator.Map{mapvalidator.NoNullValues()},
			},
		},
	}
}

// parts has nothing of the write-only files but their version: a plan knows no more.
func (f filesModel) parts() []part {
	f.ContentWO = types.MapNull(types.StringType)
	return append([]part{{inline: f.Label}, {version: f.ContentWOVersion}}, f.files()...)
}

// files are the files that are known.
func (f filesModel) files() (all []part) {
	for _, texts := range []types.Map{f.Content, f.ContentWO} {
		elements := texts.Elements()
		for _, name := range slices.Sorted(maps.Keys(elements)) {
			text, _ := elements[name].(types.String)
			all = append(all, part{path: name, inline: text})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Secrets)) {
		of := f.Secrets[name]
		all = append(all, part{path: name, secret: &of.SecretRef, keys: []string{of.Key.ValueString()}})
	}
	return all
}

// iso makes the image. Errors have none of the content.
func (f filesModel) iso(read func(part) ([]byte, error)) ([]byte, error) {
	var files []image.ISOFile
	for _, p := range f.files() {
		content, err := read(p)
		if err != nil {
			return nil, err
		}
		files = append(files, image.ISOFile{Name: p.path, Content: content})
	}
	if len(files) == 0 {
		return nil, errors.New("there are no files: give it at least one in content, content_wo or secrets")
	}
	iso, err := image.ISO(f.Label.ValueString(), files...)
	if len(iso) > maxFiles {
		return nil, fmt.Errorf("the image would have %d bytes, and may have %d (16 MiB): have the guest fetch large files, or make an "+
			"image of your own and use source.file or source.url", len(iso), maxFiles)
	}
	return iso, err
}

// check refuses what can't be an image, as far as it is known. What is unknown is taken as empty.
func (f filesModel) check(isKnown bool, diags *diag.Diagnostics) {
	if len(f.files()) == 0 && !isKnown {
		return
	}
	if _, err := f.iso(func(p part) ([]byte, error) { return []byte(p.inline.ValueString()), nil }); err != nil {
		diags.AddAttributeError(childPath(fromFiles), "Invalid files", err.Error())
	}
}

// readFiles makes the image with the content of secrets.
func (r *disk) readFiles(ctx context.Context, f filesModel) ([]byte, error) {
	return f.iso(func(p part) ([]byte, error) { return r.content(ctx, p) })
}
