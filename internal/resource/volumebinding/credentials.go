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

// cleanUpTime bounds what is undone after a failure, when the operation's own time may be over.
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

// secretResult is what hosts were given.
type secretResult struct {
	// versions are those of the credentials on the hosts that have them.
	versions map[string]string
	// undo takes them off a host again, also off one that failed in the middle.
	undo map[string]func(context.Context) error
}

// putCredentials gives each host the credentials, until one refuses.
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

// revert undoes it, but for some hosts, also when the operation's time is over.
func (d secretResult) revert(ctx context.Context, but []string) error {
	var failed []error
	for _, key := range leftHosts(slices.Sorted(maps.Keys(d.undo)), but) {
		ctx, cancel := afterwards(ctx) // for each, since one that does not answer takes all of it
		if err := d.undo[key](ctx); err != nil {
			failed = append(failed, fmt.Errorf("the credentials on host %s: %w", key, err))
		}
		cancel()
	}
	return errors.Join(failed...)
}

// afterwards is the time to undo something in, when the operation's own may be over.
func afterwards(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
}

// removeCredentials takes this binding's secret off the hosts, off all that can be reached even if one can't.
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

// present are those hosts that the provider still has. One that it no longer has is given up: that is how a host that is
// off for good leaves its bindings.
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

// stale are the hosts whose credentials are missing or not those of the record.
func (r *binding) stale(ctx context.Context, state model, hosts []string, rec secret.Record, diags *diag.Diagnostics) []string {
	have := state.credentialVersions(ctx, diags)
	return slices.DeleteFunc(slices.Clone(hosts), func(key string) bool {
		version, ok := have[key]
		return ok && version == rec.Version
	})
}

// merge are the versions on hosts after put.
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

// refreshCredentials looks which hosts have this binding's secret. A host that does not answer is a warning, and
// state is believed for it: a binding of many hosts must not fail for one of them.
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
