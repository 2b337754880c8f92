package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// cleanUpTime bounds the revert of a failed operation, whose own timeout may be over.
const cleanUpTime = 30 * time.Second

func (m model) record(own privateState, c *volume.Credentials) secret.Record {
	r := secret.Record{ID: m.ID.ValueString(), Owner: own.Owner, Name: m.Name.ValueString(), Nonce: own.Nonce}
	if c != nil {
		r.Version = c.Version
	}
	return r
}

func (m model) hasCredentials(ctx context.Context, diags *diag.Diagnostics) bool {
	return !m.Credentials.IsNull() || len(m.credentialVersions(ctx, diags)) > 0
}

// secretResult is the result of writing credentials to hosts.
type secretResult struct {
	// versions are the versions of the credentials by host.
	versions map[string]string
	// undo removes the credentials from a host again, also from one where writing them failed halfway.
	undo map[string]func(context.Context) error
}

// putCredentials writes the credentials to each host, and stops at the first error.
func (r *binding) putCredentials(ctx context.Context, rec secret.Record, c *volume.Credentials, hosts []string) (secretResult, error) {
	put := secretResult{map[string]string{}, map[string]func(context.Context) error{}}
	if c == nil {
		return put, nil
	}
	for _, key := range hosts {
		h, err := r.backend.Hosts.Host(key)
		if err != nil {
			return put, err
		}
		undo, err := secret.Put(ctx, h, rec, *c)
		if undo != nil {
			put.undo[key] = undo
		}
		if err != nil {
			return put, err
		}
		put.versions[key] = rec.Version
	}
	return put, nil
}

// revert undoes putCredentials on all hosts except some, also after the operation's timeout.
func (d secretResult) revert(ctx context.Context, but []string) error {
	var failed []error
	for _, key := range leftHosts(slices.Sorted(maps.Keys(d.undo)), but) {
		ctx, cancel := afterwards(ctx) // a timeout for each host, since an unresponsive one uses up all of it
		if err := d.undo[key](ctx); err != nil {
			failed = append(failed, fmt.Errorf("the credentials on host %s: %w", key, err))
		}
		cancel()
	}
	return errors.Join(failed...)
}

// afterwards is a context to revert something in, because the operation's own may be done.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
}

// removeCredentials removes this binding's secret from the hosts, also from the rest of them if one fails.
func (r *binding) removeCredentials(ctx context.Context, id, nonce string, hosts []string) error {
	var failed []error
	for _, key := range hosts {
		h, err := r.backend.Hosts.Host(key)
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
		_, err := r.backend.Hosts.Host(key)
		if err != nil {
			diags.AddWarning("A host is given up", fmt.Sprintf("The provider no longer has host %s. Whether a machine there uses the storage of "+
				"binding %s is not known, and its credentials, if it has any, stay there: virsh secret-undefine %s",
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
		keys = r.backend.Hosts.Keys()
	}
	for _, key := range keys {
		h, err := r.backend.Hosts.Host(key)
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
