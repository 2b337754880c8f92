package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func (m model) record(own privateState, c *volume.Credentials) secret.Record {
	r := secret.Record{
		ID: m.ID.ValueString(), Owner: own.Owner, Name: m.Name.ValueString(), Nonce: own.Nonce,
		Volume: own.Answer.Fingerprint(),
	}
	if c != nil {
		r.Version = c.Version
	}
	return r
}

func (m model) hasCredentials(ctx context.Context, diags *diag.Diagnostics) bool {
	return !m.Credentials.IsNull() || len(m.credentialVersions(ctx, diags)) > 0
}

// putCredentials writes the credentials to each host, and stops at the first error. It returns their versions by host. To revert it removes
// them again, also from a host where writing them failed halfway, but not from the hosts in had.
func (r *binding) putCredentials(ctx context.Context, rec secret.Record, c *volume.Credentials, hosts, had []string,
	undo *revert.Stack,
) (map[string]string, error) {
	versions := map[string]string{}
	if c == nil {
		return versions, nil
	}
	for _, key := range hosts {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			return versions, err
		}
		remove, err := secret.Put(ctx, h, rec, *c)
		if remove != nil && !slices.Contains(had, key) {
			undo.Push(removal(key, remove))
		}
		if err != nil {
			return versions, err
		}
		versions[key] = rec.Version
	}
	return versions, nil
}

// removal is remove, which removes the credentials from a host, with an error that names the host.
func removal(key string, remove func(context.Context) error) revert.Step {
	return func(ctx context.Context) error {
		if err := remove(ctx); err != nil {
			return fmt.Errorf("the credentials on host %s: %w", key, err)
		}
		return nil
	}
}

// removeCredentials removes this binding's secret from the hosts, also from the rest of them if one fails.
func (r *binding) removeCredentials(ctx context.Context, id, nonce string, hosts []string) error {
	var failed []error
	for _, key := range hosts {
		h, err := r.Provider.Hosts.Host(key)
		if err == nil {
			err = secret.Remove(ctx, h, id, nonce)
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// present are the hosts that the provider is still configured with. One that was removed from the provider is given up with a warning, so
// that bindings can leave a host that is off for good.
func (r *binding) present(state model, keys []string, diags *diag.Diagnostics) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		_, err := r.Provider.Hosts.Host(key)
		if err != nil {
			diags.AddWarning("A host is given up", fmt.Sprintf("The provider no longer has host %s. Whether a machine there uses the "+
				"storage of binding %s is not known, and its credentials, if it has any, stay there: virsh secret-undefine %s",
				key, state.Name.ValueString(), state.ID.ValueString()))
		}
		return err != nil
	})
}

// stale are the hosts whose credentials are missing or not of the record's version.
func (r *binding) stale(ctx context.Context, state model, hosts []string, rec secret.Record, diags *diag.Diagnostics) []string {
	have := state.credentialVersions(ctx, diags)
	return slices.DeleteFunc(slices.Clone(hosts), func(key string) bool {
		version, ok := have[key]
		return ok && version == rec.Version
	})
}

// merge returns the versions by host after put.
func merge(before, put map[string]string, hosts []string) map[string]string {
	after := map[string]string{}
	for _, key := range hosts {
		if version, ok := put[key]; ok {
			after[key] = version
		} else if version, ok := before[key]; ok {
			after[key] = version
		}
	}
	return after
}

func leftHosts(before, now []string) []string {
	return slices.DeleteFunc(slices.Clone(before), func(key string) bool { return slices.Contains(now, key) })
}

// refreshCredentials reads which hosts have this binding's secret. A host that does not answer is a warning, and its entry in state is
// kept: a binding of many hosts must not fail because of one.
func (r *binding) refreshCredentials(ctx context.Context, state *model, own privateState, diags *diag.Diagnostics) {
	if state.Credentials.IsNull() {
		return
	}
	versions := state.credentialVersions(ctx, diags)
	keys := state.hostKeys(ctx, diags)
	if own.Everywhere {
		keys = r.Provider.Hosts.Keys()
	}
	for _, key := range keys {
		h, err := r.Provider.Hosts.Host(key)
		if err != nil {
			diags.AddWarning("A host of the binding is not configured", err.Error())
			continue
		}
		rec, err := secret.Get(ctx, h, state.ID.ValueString())
		switch {
		case err == nil && rec.Nonce == own.Nonce:
			versions[key] = rec.Version
		case err == nil, errors.Is(err, host.ErrNotFound):
			delete(versions, key)
		default:
			diags.AddWarning("A host of the binding could not be asked",
				fmt.Sprintf("Whether it still has the credentials of %s is not known: %s", state.Name.ValueString(), err))
		}
	}
	var d diag.Diagnostics
	state.Credentials, d = types.MapValueFrom(ctx, types.StringType, versions)
	diags.Append(d...)
}
