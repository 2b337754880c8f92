package provider

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

func providerSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Gives virtual machines on plain libvirt hosts the storage of a Kubernetes cluster.",
		Attributes: map[string]schema.Attribute{
			"owner": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Identifies this configuration on hosts and in the cluster, so that an interrupted apply " +
					"recognizes its own objects and continues. Set it to a value that no other configuration uses. A change affects " +
					"new objects, and a machine when it is next updated.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, 63)},
			},
			"kubernetes": schema.SingleNestedAttribute{
				Optional: true,
				MarkdownDescription: "The Kubernetes cluster whose claims are used. The names are those of the " +
					"[kubernetes provider](https://registry.terraform.io/providers/hashicorp/kubernetes/latest/docs#argument-reference).",
				Attributes: kubernetesAttributes(),
			},
			"hosts": schema.MapNestedAttribute{
				Optional: true,
				MarkdownDescription: "The libvirt hosts, by the name that resources use for them. Connections are opened lazily. Only " +
					"the data source `virtclaim_persistent_volume_claim` needs none.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"uri": schema.StringAttribute{
						Required: true,
						MarkdownDescription: "The [libvirt URI](https://libvirt.org/uri.html), such as `qemu:///system`, " +
							"`qemu+ssh://root@node-a/system` or `qemu+tls://node-a/system`. See the guide on hosts for the " +
							"transports and the parameters of a URI.",
					},
					"storage": schema.MapAttribute{
						Optional: true, ElementType: types.StringType,
						MarkdownDescription: "The host's libvirt storage pools by usage type, such as `{ fast = \"ssd\" }`. Defaults " +
							"to the annotations `kubevirt.io/storage.usage-type.<usage type>: <folder>` of the host's Kubernetes node.",
					},
					"connect_timeout": schema.StringAttribute{
						Optional: true,
						Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^([1-9][0-9]?s|([1-9]|10)m)$`),
							"must be a number of seconds or minutes, such as 30s or 2m, and at most 10m")},
						MarkdownDescription: "How long the host may take to accept a connection, such as `30s` or `2m`. Defaults to " +
							"`10s`. Hosts under load, or behind slow jump hosts, need more; that a host is down is noticed later then.",
					},
					"migration_uri": schema.StringAttribute{
						Optional: true,
						Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^qemu(\+[a-z]+)?://`),
							"must be a libvirt URI of QEMU, such as qemu+tls://node-b/system")},
						MarkdownDescription: "The libvirt URI by which the libvirtd of another host reaches this one, such as " +
							"`qemu+tls://node-b/system`: machines are migrated to it peer to peer then, which a killed provider does not " +
							"stop. By default the provider passes what both say to each other.",
					},
					"migration_address": schema.StringAttribute{
						Optional: true,
						Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[0-9A-Za-z.:_-]+$`),
							"must be an address or a name")},
						MarkdownDescription: "The address or name at which QEMU of another host reaches QEMU of this one, on the ports " +
							"49152 to 49215, when a machine is migrated to it. Defaults to the host's own name, which the other host " +
							"must be able to resolve.",
					},
					"kubernetes_node": schema.StringAttribute{
						Optional: true,
						MarkdownDescription: "The Kubernetes node that corresponds to the host, for the node affinity of " +
							"PersistentVolumes, for usage types, and where a binding has Kubernetes mount a volume (`attach`). " +
							"Defaults to the host's key.",
					},
					"kubelet_root_dir": schema.StringAttribute{
						Optional: true,
						Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^/[^.]`),
							"must be the absolute path of a folder")},
						MarkdownDescription: "The root directory of the host's kubelet (`--root-dir`), below which a binding with " +
							"`attach` looks for the volume. Defaults to `/var/lib/kubelet`; others are `/var/lib/k0s/kubelet` (k0s) and " +
							"`/var/snap/microk8s/common/var/lib/kubelet` (MicroK8s).",
					},
				}},
			},
		},
	}
}

func kubernetesAttributes() map[string]schema.Attribute {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, MarkdownDescription: description}
	}
	secret := func(description string) schema.Attribute {
		return schema.StringAttribute{Optional: true, Sensitive: true, MarkdownDescription: description}
	}
	list := func(description string) schema.Attribute {
		return schema.ListAttribute{Optional: true, ElementType: types.StringType, MarkdownDescription: description}
	}
	return map[string]schema.Attribute{
		"config_path":              text("Path of a kubeconfig file."),
		"config_paths":             list("Paths of several kubeconfig files, which are merged."),
		"config_context":           text("The kubeconfig's context to use; its current one by default."),
		"config_context_auth_info": text("The kubeconfig's user to use instead of the context's."),
		"config_context_cluster":   text("The kubeconfig's cluster to use instead of the context's."),
		"host":                     text("URL of the API server, without user, password or query."),
		"username":                 text("User name for basic authentication."),
		"password":                 secret("Password for basic authentication."),
		"token":                    secret("Bearer token."),
		"client_certificate":       text("The client's certificate, PEM."),
		"client_key":               secret("The client certificate's key, PEM."),
		"cluster_ca_certificate":   text("Certificates of the authorities that sign the API server's certificate, PEM."),
		"tls_server_name":          text("The server name that the API server's certificate is verified against."),
		"reserve_claims": schema.BoolAttribute{
			Optional: true,
			MarkdownDescription: "Whether a binding reserves its claim with an annotation and a finalizer, so that no other " +
				"configuration binds the claim and it can't be deleted. Requires the permission to patch PersistentVolumeClaims. " +
				"Defaults to `true`.",
		},
		"volume_image": text("Reference of the [volume image](guides/filling-claims.md), by which pods fill claims (`via.pod` of " +
			"`virtclaim_volume_content`). Defaults to that of the provider's release, by digest: set it where nodes can't pull that, " +
			"or for a provider that you have built."),
		"insecure": schema.BoolAttribute{Optional: true, MarkdownDescription: "Don't verify the API server's certificate. Each plan " +
			"warns of it."},
		"proxy_url": text("URL of a proxy for all requests. A URL with a password is refused: set the environment variable " +
			"`HTTPS_PROXY` instead."),
		"exec": schema.SingleNestedAttribute{
			Optional:            true,
			MarkdownDescription: "A program that prints credentials.",
			Attributes: map[string]schema.Attribute{
				"api_version": schema.StringAttribute{Required: true, MarkdownDescription: "Version of the exec credential API."},
				"command":     schema.StringAttribute{Required: true, MarkdownDescription: "The program."},
				"args":        list("Its arguments."),
				"env": schema.MapAttribute{
					Optional: true, ElementType: types.StringType, MarkdownDescription: "Its additional environment.",
				},
			},
		},
	}
}
