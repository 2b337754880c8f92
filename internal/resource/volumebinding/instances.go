package volumebinding

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
)

// checkInstances is the secret of another instance of the binding, which this one replaces then; nil if no host has any. An instance that
// may have the volume on more hosts than this one is refused: it may be that of another state.
func (k *dynamicVolume) checkInstances(ctx context.Context, own privateState) (replaced *secret.Record, err error) {
	var diags diag.Diagnostics
	hosts := k.m.hostKeys(ctx, &diags)
	isOurs := func(key string) bool { return slices.Contains(hosts, key) }
	found, err := k.instances(ctx, own, isOurs)
	for _, i := range found {
		if !isOurs(i.host) {
			return nil, fmt.Errorf("host %s has another instance of the binding %s: another state has the same owner and name, or hosts "+
				"are changed together with a replacement. Change hosts in an apply of its own. If the other instance is gone for good, "+
				"run there: virsh secret-undefine %s", i.host, k.m.Name.ValueString(), k.m.ID.ValueString())
		}
		replaced = &i.Record
	}
	return replaced, err
}

// instance is the secret of another instance of the binding on a host.
type instance struct {
	host string
	secret.Record
}

// instances are those on all hosts of the provider. Some of them have to answer.
func (k *dynamicVolume) instances(ctx context.Context, own privateState, mustAnswer func(key string) bool) (all []instance, err error) {
	for _, key := range k.Provider.Hosts.Keys() {
		h, err := k.Provider.Hosts.Host(key)
		if err != nil {
			return all, err
		}
		found, err := secret.Get(ctx, h, k.m.ID.ValueString())
		switch {
		case err == nil && found.Nonce != own.Nonce:
			all = append(all, instance{key, found})
		case err != nil && !errors.Is(err, host.ErrNotFound) && mustAnswer(key):
			return all, err
		}
	}
	return all, nil
}
