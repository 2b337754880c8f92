package content

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// ErrRebased is the error of an overlay whose backing file is not the one in its chain: its guest would read the data of another image where the
// overlay has none.
var ErrRebased = errors.New("it was pulled or rebased outside of Terraform (virsh blockpull, qemu-img rebase); attached to that image it would be a " +
	"mix of two disks. If the master only has another path now, as after its pool was moved: shut the machine down, and enter that path (qemu-img rebase -u -F " +
	"<format> -b <master> <overlay>). " + domainxml.TakeCut)

// ErrNamesBacking is the error of an image without a master whose header references a backing file. Neither virtclaim nor the disk's guest writes
// such a reference: the image was opened as raw elsewhere, or converted into an overlay.
var ErrNamesBacking = errors.New("the disk was created or imported without one. Something that opened it as raw may have written that header; with it, " +
	"the guest could read any file of the host. If it did: restore the disk from a backup, replace it, or, while nothing has it open, remove the " +
	"reference (qemu-img rebase -u -f qcow2 -b '' <image>). If it was made an overlay on purpose: " + domainxml.TakeCut)

// RecognizeChain is RecognizeImage for each image of a chain, top first, and CheckBacking.
func RecognizeChain(ctx context.Context, h Locator, chain []volume.Image) error {
	for _, i := range chain {
		if err := RecognizeImage(ctx, h, i); err != nil {
			return err
		}
	}
	return CheckBacking(ctx, h, chain)
}

// CheckBacking is ErrRebased for a chain, top first, with an overlay of this host whose header names no backing file, or another one than
// the image below it, ErrNamesBacking for a chain that ends with an image whose header names one, and ErrDataFile.
func CheckBacking(ctx context.Context, h Locator, chain []volume.Image) error {
	for n, top := range chain {
		named, told, err := backingOf(ctx, h, top)
		switch {
		case err != nil:
			return err
		case n == len(chain)-1 && named != "":
			return fmt.Errorf("the head of the image %s names %q as its backing file, but %w", top.Name, Shown(named), ErrNamesBacking)
		case n < len(chain)-1 && told && IsOther(named, top.Name, chain[n+1]):
			return fmt.Errorf("the image %s is no overlay of %s any more, its head names %s as its backing file: %w",
				top.Name, chain[n+1].Name, Shown(named), ErrRebased)
		}
	}
	return nil
}

// Shown is a printable reference to a backing file: without the query and the user of a URL, and without QEMU's options, which may be secret.
func Shown(named string) string {
	if named == "" {
		return "nothing"
	}
	if strings.HasPrefix(named, "json:") {
		return strings.TrimSpace("a json: reference " + strings.Join(pathsIn(named, ""), " "))
	}
	if scheme, _, isURL := strings.Cut(named, "://"); isURL {
		address, err := url.Parse(named)
		if err != nil {
			return scheme + "://..."
		}
		address.User, address.RawQuery, address.Fragment = nil, "", ""
		return address.String()
	}
	if parts := strings.SplitN(named, ":", 3); hasProtocol(named) && len(parts) > 1 {
		return parts[0] + ":" + parts[1]
	}
	return named
}

// farBacking replaces the name of a backing file that is beyond the bytes that were read.
const farBacking = "what is further in the file"

// backingOf is the backing file in the header of an overlay of this host. It is unknown for an image outside of all storage pools, or whose path
// another volume has.
func backingOf(ctx context.Context, h Locator, top volume.Image) (named string, told bool, err error) {
	if top.Type != "file" || top.Generation == "" || top.Format != "qcow2" {
		return "", false, nil
	}
	v, err := h.VolumeAt(ctx, top.Name)
	if err != nil || !hasHeader(v, top.Format) {
		return "", false, ignoreNotFound(err)
	}
	head, err := h.VolumeHead(ctx, v.Pool, v.Name, image.HeadSize)
	if err != nil {
		return "", false, ignoreNotFound(err)
	}
	if id := image.Identity(head); id != "" && id != volume.LastingGeneration(top.Generation) {
		return "", false, nil
	}
	if image.HasDataFile(head) {
		return "", false, fmt.Errorf("volume %s in storage pool %s: %w", v.Name, v.Pool, ErrDataFile)
	}
	named, told = image.Backing(head)
	if !told && image.HasBacking(head) {
		named = farBacking
	}
	return named, told, nil
}

// IsOther reports whether the backing file in the header of an overlay is known not to be the image. An overlay of network storage names none,
// because libvirt can't create one that does, and such storage has many names.
func IsOther(named, overlay string, below volume.Image) bool {
	named = absolute(named, overlay)
	switch {
	case named == "" || strings.Contains(named, "://"):
		return !below.IsRemote()
	case hasProtocol(named): // such as json:
		return !below.IsRemote() && !isPlain(named, overlay, below)
	}
	same, clear := volume.SameMaster(volume.Image{Type: "file", Name: named, Hosts: below.Hosts}, below)
	return clear && !same
}

// isPlain reports whether a json: reference has only a file and its format, without options such as an offset or another image above it.
func isPlain(named, overlay string, below volume.Image) bool {
	var is map[string]any
	if err := json.Unmarshal([]byte(strings.TrimPrefix(named, "json:")), &is); err != nil {
		return false
	}
	files := flatten(is)
	for key, value := range files {
		parts := strings.Split(key, ".")
		last := len(parts) - 1
		isNested := slices.ContainsFunc(parts[:last], func(part string) bool { return part != "file" }) // such as backing
		isFormat := parts[last] == "driver" && slices.Contains([]any{"file", "host_device", below.Format}, value)
		text, _ := value.(string)
		isFile := parts[last] == "filename" && absolute(text, overlay) == path.Clean(below.Name)
		if isNested || !isFormat && !isFile {
			return false
		}
	}
	return len(files) > 0
}

// flatten converts nested objects to keys with dots, as QEMU does.
func flatten(object map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range object {
		inner, isObject := value.(map[string]any)
		if !isObject {
			all[key] = value
			continue
		}
		for below, value := range flatten(inner) {
			all[key+"."+below] = value
		}
	}
	return all
}

// mayName reports whether the backing file that an overlay's header references may be the file of that path. A relative path in a json: reference
// does not start at the overlay's folder, so that only its base name is compared.
func mayName(named, overlay, file string) bool {
	if slices.Contains(pathsIn(named, overlay), path.Clean(file)) {
		return true
	}
	text, isJSON := strings.CutPrefix(named, "json:")
	return isJSON && slices.ContainsFunc(stringsIn(text), func(part string) bool { return !path.IsAbs(part) && path.Base(part) == path.Base(file) })
}

// pathsIn are the absolute paths in a reference to a backing file: its own, those in the strings of a json: reference, and those after the names
// of QEMU's filter drivers, such as blkdebug:config:path.
func pathsIn(named, overlay string) (paths []string) {
	if text, isJSON := strings.CutPrefix(named, "json:"); isJSON {
		for _, part := range stringsIn(text) {
			if part = strings.TrimPrefix(part, "file:"); path.IsAbs(part) || hasProtocol(part) {
				paths = append(paths, pathsIn(part, overlay)...)
			}
		}
		return paths
	}
	if named = absolute(named, overlay); path.IsAbs(named) {
		return []string{named}
	}
	if strings.Contains(named, "://") {
		return nil
	}
	for _, rest, more := strings.Cut(named, ":"); more; _, rest, more = strings.Cut(rest, ":") {
		part, _, _ := strings.Cut(rest, ":")
		for _, candidate := range []string{rest, part} {
			if candidate = path.Clean(candidate); path.IsAbs(candidate) && !slices.Contains(paths, candidate) {
				paths = append(paths, candidate)
			}
		}
	}
	return paths
}

// literals are the strings in QEMU's JSON, which may be in single quotes.
var literals = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'`)

// stringsIn are the strings in the text of a json: reference, also of one that is incomplete.
func stringsIn(text string) (all []string) {
	for _, literal := range literals.FindAllString(text, -1) {
		inner := literal[1 : len(literal)-1]
		if literal[0] == '\'' {
			inner = strings.NewReplacer(`\\`, `\\`, `\'`, `'`, `\"`, `\"`, `"`, `\"`).Replace(inner)
		}
		var part string
		if err := json.Unmarshal([]byte(`"`+inner+`"`), &part); err != nil {
			part = inner
		}
		all = append(all, part)
	}
	return all
}

// absolute is the path of the file in the header of an overlay, or the reference itself if it is no file. libvirt and QEMU have several notations.
func absolute(named, overlay string) string {
	named = strings.TrimPrefix(named, "file:")
	switch {
	case named == "" || hasProtocol(named):
		return named
	case !path.IsAbs(named):
		named = path.Join(path.Dir(overlay), named)
	}
	return path.Clean(named)
}

func hasProtocol(named string) bool {
	folder, _, _ := strings.Cut(named, "/")
	return strings.Contains(folder, ":")
}
