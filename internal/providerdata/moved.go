package providerdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// peer is how the address of the provider ends whose resources can be moved here, in whatever registry or mirror.
const peer = "/dmacvicar/libvirt"

// Former is what the peer has recorded of a resource. Attributes that it does not have are empty.
type Former struct {
	TypeName string
	ID       any // a number, or missing, for domains since 0.9
	UUID     string
	Name     string
	Pool     string
}

// Mover moves resources of the peer's types to this resource. Terraform asks a provider that is not configured, so no host can be asked
// for them: identify returns the attributes by which the next read finds them (FindMoved). The attribute host stays null until then.
func Mover(identify func(Former) (map[string]string, error), typeNames ...string) []resource.StateMover {
	return []resource.StateMover{{StateMover: func(ctx context.Context, req resource.MoveStateRequest, resp *resource.MoveStateResponse) {
		if !strings.HasSuffix("/"+req.SourceProviderAddress, peer) || !slices.Contains(typeNames, req.SourceTypeName) {
			return // the framework reports that no mover takes it
		}
		attributes, err := formerly(req, identify)
		if err != nil {
			resp.Diagnostics.AddError("The resource could not be moved", fmt.Sprintf("%s: %s. Nothing has been changed. To go on "+
				"without the moved block: terraform state rm <its former address>, and an import block.", req.SourceTypeName, err))
			return
		}
		for name, value := range attributes {
			resp.Diagnostics.Append(resp.TargetState.SetAttribute(ctx, path.Root(name), value)...)
		}
	}}}
}

func formerly(req resource.MoveStateRequest, identify func(Former) (map[string]string, error)) (map[string]string, error) {
	if req.SourceSchemaVersion != 0 {
		return nil, fmt.Errorf("its schema has version %d, and only version 0, of dmacvicar/libvirt 0.8 and 0.9, is known here",
			req.SourceSchemaVersion)
	}
	was := Former{TypeName: req.SourceTypeName}
	if err := json.Unmarshal(req.SourceRawState.JSON, &was); err != nil {
		return nil, errors.New("its state has not the form that dmacvicar/libvirt 0.8 or 0.9 writes")
	}
	attributes, err := identify(was)
	if err != nil {
		return nil, err
	}
	for name, value := range attributes {
		if value == "" {
			return nil, fmt.Errorf("its state does not tell the %s of what it is", name)
		}
	}
	return attributes, nil
}

// FindMoved returns the key of the only host that has a moved object, such as "domain web"; on looks for it on a host. shape is that of its
// import id. The hosts may have several objects of that description, so each must have answered.
func (d *Data) FindMoved(ctx context.Context, object, shape string, on func(context.Context, *host.Host) error) (string, error) {
	var found []string
	instead := "forget its former resource (terraform state rm), and replace the moved block by an import block with the id " + shape
	for _, key := range d.Hosts.Keys() {
		h, err := d.Hosts.Host(key)
		if err == nil {
			err = on(ctx, h)
		}
		switch {
		case err == nil:
			found = append(found, key)
		case !errors.Is(err, host.ErrNotFound) && !errors.Is(err, host.ErrNoPool):
			return "", fmt.Errorf("%w\n\nIt may be there. Repeat this once the host answers; or %s", err, instead)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", fmt.Errorf("no host has %s (asked: %s). Add its host to hosts in the provider's configuration; if it is another object "+
			"by now, %s", object, strings.Join(d.Hosts.Keys(), ", "), instead)
	default:
		return "", fmt.Errorf("hosts %s have %s each. To say which one it is, %s", strings.Join(found, ", "), object, instead)
	}
}

// RefuseUnread reports whether a plan is of a moved object that no read has found yet, because Terraform did not refresh, or the provider
// is not known: it would be replaced.
func RefuseUnread(ctx context.Context, req resource.ModifyPlanRequest, diags *diag.Diagnostics) bool {
	var of types.String
	if req.State.Raw.IsNull() {
		return false
	}
	if diags.Append(req.State.GetAttribute(ctx, path.Root("host"), &of)...); !of.IsNull() {
		return false
	}
	diags.AddError("The moved resource was not read yet", "Its host is found by a refresh, with a provider whose configuration is known. "+
		"Plan without -refresh=false, and apply what the configuration of the provider comes from before.")
	return true
}
