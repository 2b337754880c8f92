package disk

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/image"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// instances is the UUID namespace of generated instance ids.
var instances = uuid.MustParse("6d7e8a0c-52d1-5f0e-9a3b-1c3e7b0b6f52")

// part is one file of a seed, and the source of its content.
type part struct {
	inline, writeOnly types.String
	version           types.Int64
	secret            *tfvalue.SecretRef
	// keys are the keys in the secret that may have it.
	keys []string
	// path is where the file is on an image of files.
	path string
}

func (c cloudInitModel) parts() []part {
	user, network, meta := c.files()
	return []part{user, network, meta}
}

func (c cloudInitModel) files() (user, network, meta part) {
	return part{c.UserData, c.UserDataWO, c.UserDataWOVersion, c.UserDataSecretRef, []string{"userdata", "userData"}, ""},
		part{c.NetworkData, c.NetworkDataWO, c.NetworkDataWOVersion, c.NetworkDataSecretRef, []string{"networkdata", "networkData"}, ""},
		part{c.MetaData, c.MetaDataWO, c.MetaDataWOVersion, nil, nil, ""}
}

// secretVersions reads the version of a Kubernetes secret without its content.
type secretVersions interface {
	SecretVersion(ctx context.Context, namespace, name string) (string, error)
}

// identityOf distinguishes composed content without revealing secrets: it has inline content, the version of write-only values, and the
// name and version of a Kubernetes secret.
func identityOf(ctx context.Context, of composed, versions func() (secretVersions, error)) (string, error) {
	type known struct {
		Inline, Object, Version string
		Path, Key               string `json:",omitempty"` // other disks' digests stay as they were without it
	}
	var parts []known
	for _, p := range of.parts() {
		k := known{Inline: p.inline.ValueString(), Path: p.path}
		if p.path != "" && p.secret != nil {
			k.Key = p.keys[0]
		}
		if !p.version.IsNull() {
			k.Version = p.version.String()
		}
		if p.secret != nil {
			reader, err := versions()
			if err != nil {
				return "", err
			}
			namespace, name := p.secret.Namespace.ValueString(), p.secret.Name.ValueString()
			version, err := reader.SecretVersion(ctx, namespace, name)
			if err != nil {
				return "", err
			}
			k.Object, k.Version = namespace+"/"+name, version
		}
		parts = append(parts, k)
	}
	text, err := json.Marshal(parts)
	return string(text), err
}

// seed reads the content of a seed.
func (r *disk) seed(ctx context.Context, plan model, c cloudInitModel) (s image.Seed, err error) {
	user, network, meta := c.files()
	if s.UserData, err = r.content(ctx, user); err != nil {
		return s, err
	}
	if err := image.CheckUserData(s.UserData); err != nil {
		return s, fmt.Errorf("user_data_secret_ref: %w", err)
	}
	if s.NetworkConfig, err = r.content(ctx, network); err != nil {
		return s, err
	}
	if s.MetaData, err = r.content(ctx, meta); err == nil && len(s.MetaData) == 0 {
		name := plan.NamePrefix.ValueString()
		if name == "" {
			name = plan.Name.ValueString()
		}
		s.MetaData = fmt.Appendf(nil, "instance-id: %s\n", uuid.NewSHA1(instances, []byte(plan.Host.ValueString()+"/"+name)))
	}
	return s, err
}

func (r *disk) content(ctx context.Context, p part) ([]byte, error) {
	if p.secret == nil {
		return []byte(p.inline.ValueString() + p.writeOnly.ValueString()), nil // one of them is empty
	}
	client, err := r.Provider.Cluster()
	if err != nil {
		return nil, err
	}
	namespace, name := p.secret.Namespace.ValueString(), p.secret.Name.ValueString()
	found, err := client.Secret(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	for _, key := range p.keys {
		if value, ok := found.Data[key]; ok {
			return value, nil
		}
	}
	return nil, fmt.Errorf("the Secret %s/%s has none of the keys %s; it has %s", namespace, name, strings.Join(p.keys, ", "),
		strings.Join(slices.Sorted(maps.Keys(found.Data)), ", "))
}

// withSecrets adds the write-only values of the configuration to a plan. The result must not be written to the state.
func (m model) withSecrets(ctx context.Context, config tfsdk.Config, diags *diag.Diagnostics) (s sourceModel) {
	s = m.source(ctx, diags)
	get := func(into *types.String, at path.Path) { diags.Append(config.GetAttribute(ctx, at, into)...) }
	if s.Container != nil {
		get(&s.Container.PasswordWO, childPath(fromContainer).AtName("password_wo"))
	}
	if s.Root != nil {
		get(&s.Root.PasswordWO, childPath(fromRoot).AtName("password_wo"))
	}
	if s.Env != nil {
		diags.Append(config.GetAttribute(ctx, childPath(fromEnvironment).AtName("variables_wo"), &s.Env.VariablesWO)...)
	}
	if s.Files != nil {
		diags.Append(config.GetAttribute(ctx, childPath(fromFiles).AtName("content_wo"), &s.Files.ContentWO)...)
	}
	if s.Ignition != nil {
		get(&s.Ignition.ConfigWO, childPath(fromIgnition).AtName("config_wo"))
	}
	if s.CloudInit != nil {
		at := childPath(fromCloudInit)
		get(&s.CloudInit.UserDataWO, at.AtName("user_data_wo"))
		get(&s.CloudInit.NetworkDataWO, at.AtName("network_data_wo"))
		get(&s.CloudInit.MetaDataWO, at.AtName("meta_data_wo"))
	}
	return s
}
