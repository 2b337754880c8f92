package volumebinding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

func containerAttribute() schema.SingleNestedAttribute {
	name := tfvalue.ObjectName()
	named := func(description string) schema.Attribute {
		return tfvalue.Required(description, name...)
	}
	c := object("The container of a pod that makes this volume, and may serve it. The pod has the name `virtclaim-` and the binding's "+
		"id, and stays until the binding is destroyed. Changing `namespace` or `image` forces a new resource; another "+
		"change has the pod made again, while no machine that runs uses the volume.", map[string]schema.Attribute{
		"namespace": named("The pod's namespace, also that of all objects that it refers to, and of the claims and Secrets that its " +
			"answer names."),
		"image":   tfvalue.Required("The container image."),
		"command": textList("The program, instead of the image's entrypoint."),
		"args":    textList("Its arguments. `$(NAME)` is the value of an environment variable."),
		"env": textMap("Environment variables. `POD_IP`, `HOST_IP`, `POD_NAME`, `POD_NAMESPACE`, and `VIRTCLAIM_SECRET`, the name of the " +
			"Secret at `/var/run/virtclaim`, are there, too."),
		"pod_template": tfvalue.Optional("What else the pod has: a PodTemplateSpec in YAML, of which `metadata.labels`, " +
			"`metadata.annotations` and `spec` count. Its container is called `volume`; it may be left out, and there may be " +
			"`initContainers`. What the other attributes say precedes: containers, variables, volumes and mounts are merged by name or " +
			"path, other lists replaced. The text is in the state: name passwords by `valueFrom.secretKeyRef`."),
		"ports": schema.ListNestedAttribute{
			Optional: true, MarkdownDescription: "Ports of the container. The first takes the requests; 8443 if absent.",
			Validators: []validator.List{listvalidator.SizeAtLeast(1)},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"container_port": schema.Int64Attribute{
					Required: true, MarkdownDescription: "The port.", Validators: []validator.Int64{int64validator.Between(1, 65535)},
				},
				"host_port": schema.Int64Attribute{
					Optional: true,
					MarkdownDescription: "The port of the node that leads to it, for libvirt hosts that do not reach the addresses " +
						"of pods.",
					Validators: []validator.Int64{int64validator.Between(1, 65535)},
				},
			}},
		},
		"scheme": tfvalue.Optional("`https` (default) or `http`. The API server, which forwards the requests, does not verify the "+
			"certificate.", stringvalidator.OneOf("https", "http")),
		"resources": object("What the container needs, in Kubernetes quantities.", map[string]schema.Attribute{
			"requests": textMap("At least this, such as `memory = \"64Mi\"`."),
			"limits":   textMap("At most this."),
		}),
		"claims": schema.ListNestedAttribute{
			Optional: true, MarkdownDescription: "Claims that the container has, such as that in which it keeps the volume.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"claim_name":  named("The claim's name."),
				"mount_path":  tfvalue.Optional("Where its filesystem is mounted."),
				"device_path": tfvalue.Optional("Where its device is, for a claim with `volumeMode: Block`."),
				"read_only":   schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether the container only reads it."},
			}},
		},
		"secrets": schema.ListNestedAttribute{
			Optional: true, MarkdownDescription: "Secrets that the container reads, such as that of a registry or a storage system.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"secret_name": named("The Secret's name."),
				"mount_path":  tfvalue.Required("The folder with its keys as files."),
			}},
		},
		"service_account": tfvalue.Optional("Service account of the pod, which then has its token, to make claims, for instance. "+
			"Without it the pod has no token.", name...),
		"pull_secrets": schema.ListAttribute{
			Optional: true, ElementType: types.StringType, Validators: []validator.List{listvalidator.ValueStringsAre(name...)},
			MarkdownDescription: "Secrets with the password of the image's registry.",
		},
		"node_selector": textMap("Labels of the nodes on which the pod may run."),
		"tolerations": schema.ListNestedAttribute{
			Optional: true, MarkdownDescription: "Taints of nodes that the pod tolerates.",
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"key":      tfvalue.Optional("The taint's key; all if absent."),
				"operator": tfvalue.Optional("`Equal` (default) or `Exists`.", stringvalidator.OneOf("Equal", "Exists")),
				"value":    tfvalue.Optional("The taint's value."),
				"effect": tfvalue.Optional("`NoSchedule`, `PreferNoSchedule` or `NoExecute`; all if absent.",
					stringvalidator.OneOf("NoSchedule", "PreferNoSchedule", "NoExecute")),
			}},
		},
		"security_context": object("Whom the container runs as. It never gets more rights than it was started with, unless "+
			"`pod_template` says so.",
			map[string]schema.Attribute{
				"run_as_non_root": schema.BoolAttribute{
					Optional: true,
					MarkdownDescription: "Refuse an image that runs as root, and drop all capabilities, as the Pod Security " +
						"Standard `restricted` demands.",
				},
				"run_as_user": id64("The user's id; that of the image if absent."),
				"fs_group":    id64("Id of the group that may write to mounted claims."),
			}),
	})
	c.Validators = []validator.Object{objectvalidator.ExactlyOneOf(path.MatchRelative(), path.MatchRelative().AtParent().AtName("server"))}
	return c
}

func id64(description string) schema.Attribute {
	return schema.Int64Attribute{
		Optional: true, MarkdownDescription: description,
		Validators: []validator.Int64{int64validator.Between(0, 1<<31-1)},
	}
}

func textList(description string) schema.Attribute {
	return schema.ListAttribute{
		Optional: true, ElementType: types.StringType, MarkdownDescription: description,
		Validators: []validator.List{listvalidator.NoNullValues()},
	}
}

func textMap(description string) schema.Attribute {
	return schema.MapAttribute{
		Optional: true, ElementType: types.StringType, MarkdownDescription: description,
		Validators: []validator.Map{mapvalidator.NoNullValues()},
	}
}

type containerModel struct {
	Namespace types.String `tfsdk:"namespace"`
	Image     types.String `tfsdk:"image"`
	Command   types.List   `tfsdk:"command"`
	Args      types.List   `tfsdk:"args"`
	Env       types.Map    `tfsdk:"env"`
	Template  types.String `tfsdk:"pod_template"`
	Ports     []portModel  `tfsdk:"ports"`
	Scheme    types.String `tfsdk:"scheme"`
	Resources *struct {
		Requests types.Map `tfsdk:"requests"`
		Limits   types.Map `tfsdk:"limits"`
	} `tfsdk:"resources"`
	Claims []struct {
		ClaimName  types.String `tfsdk:"claim_name"`
		MountPath  types.String `tfsdk:"mount_path"`
		DevicePath types.String `tfsdk:"device_path"`
		ReadOnly   types.Bool   `tfsdk:"read_only"`
	} `tfsdk:"claims"`
	Secrets []struct {
		SecretName types.String `tfsdk:"secret_name"`
		MountPath  types.String `tfsdk:"mount_path"`
	} `tfsdk:"secrets"`
	ServiceAccount types.String `tfsdk:"service_account"`
	PullSecrets    types.List   `tfsdk:"pull_secrets"`
	NodeSelector   types.Map    `tfsdk:"node_selector"`
	Tolerations    []struct {
		Key      types.String `tfsdk:"key"`
		Operator types.String `tfsdk:"operator"`
		Value    types.String `tfsdk:"value"`
		Effect   types.String `tfsdk:"effect"`
	} `tfsdk:"tolerations"`
	SecurityContext *struct {
		RunAsNonRoot types.Bool  `tfsdk:"run_as_non_root"`
		RunAsUser    types.Int64 `tfsdk:"run_as_user"`
		FSGroup      types.Int64 `tfsdk:"fs_group"`
	} `tfsdk:"security_context"`
}

type portModel struct {
	ContainerPort types.Int64 `tfsdk:"container_port"`
	HostPort      types.Int64 `tfsdk:"host_port"`
}

// template is the pod: the attributes, over pod_template, over what every pod has.
func (c containerModel) template(ctx context.Context, diags *diag.Diagnostics) (t corev1.PodTemplateSpec, err error) {
	t, err = podTemplate(c.Template.ValueString())
	if err != nil {
		return t, err
	}
	spec, err := c.spec(ctx, diags)
	if err != nil {
		return t, err
	}
	if t.Spec, err = over(t.Spec, spec); err == nil {
		c.complete(&t.Spec)
	}
	return t, err
}

// complete sets the defaults of what neither the attributes nor pod_template say.
func (c containerModel) complete(spec *corev1.PodSpec) {
	main := &spec.Containers[0]
	if len(main.Ports) == 0 {
		main.Ports = []corev1.ContainerPort{{ContainerPort: 8443}}
	}
	slices.SortStableFunc(main.Ports, func(a, b corev1.ContainerPort) int { return c.place(a) - c.place(b) })
	// The program's last words explain why it ended.
	main.TerminationMessagePolicy = cmp.Or(main.TerminationMessagePolicy, corev1.TerminationMessageFallbackToLogsOnError)
	if main.SecurityContext.AllowPrivilegeEscalation == nil {
		main.SecurityContext.AllowPrivilegeEscalation = new(false)
	}
	if main.SecurityContext.SeccompProfile == nil && spec.SecurityContext.SeccompProfile == nil {
		main.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	if spec.AutomountServiceAccountToken == nil {
		spec.AutomountServiceAccountToken = new(spec.ServiceAccountName != "")
	}
}

// place is where a port is in the attribute; those of pod_template alone follow.
func (c containerModel) place(p corev1.ContainerPort) int {
	n := slices.IndexFunc(c.Ports, func(of portModel) bool { return of.ContainerPort.ValueInt64() == int64(p.ContainerPort) })
	if n < 0 {
		n = len(c.Ports)
	}
	return n
}

// spec is what the attributes say.
func (c containerModel) spec(ctx context.Context, diags *diag.Diagnostics) (spec corev1.PodSpec, err error) {
	main := corev1.Container{
		Name: dynamic.Container, Image: c.Image.ValueString(), Command: texts(ctx, c.Command, diags), Args: texts(ctx, c.Args, diags),
		SecurityContext: &corev1.SecurityContext{},
	}
	env := textsByName(ctx, c.Env, diags)
	for _, name := range slices.Sorted(maps.Keys(env)) {
		main.Env = append(main.Env, corev1.EnvVar{Name: name, Value: env[name]})
	}
	for _, p := range c.Ports {
		main.Ports = append(main.Ports,
			corev1.ContainerPort{ContainerPort: int32(p.ContainerPort.ValueInt64()), HostPort: int32(p.HostPort.ValueInt64())})
	}
	if r := c.Resources; r != nil {
		main.Resources.Requests, err = quantities(textsByName(ctx, r.Requests, diags))
		if err == nil {
			main.Resources.Limits, err = quantities(textsByName(ctx, r.Limits, diags))
		}
	}
	spec = corev1.PodSpec{
		ServiceAccountName: c.ServiceAccount.ValueString(), NodeSelector: textsByName(ctx, c.NodeSelector, diags),
		SecurityContext: &corev1.PodSecurityContext{},
	}
	if spec.ServiceAccountName != "" {
		spec.AutomountServiceAccountToken = new(true)
	}
	for _, name := range texts(ctx, c.PullSecrets, diags) {
		spec.ImagePullSecrets = append(spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	for _, t := range c.Tolerations {
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{
			Key: t.Key.ValueString(), Operator: corev1.TolerationOperator(t.Operator.ValueString()), Value: t.Value.ValueString(),
			Effect: corev1.TaintEffect(t.Effect.ValueString()),
		})
	}
	c.secure(&spec, &main)
	err = cmp.Or(err, c.mount(&spec, &main))
	spec.Containers = []corev1.Container{main}
	return spec, err
}

func (c containerModel) secure(spec *corev1.PodSpec, main *corev1.Container) {
	s := c.SecurityContext
	if s == nil {
		return
	}
	spec.SecurityContext.RunAsUser, spec.SecurityContext.FSGroup = s.RunAsUser.ValueInt64Pointer(), s.FSGroup.ValueInt64Pointer()
	if s.RunAsNonRoot.ValueBool() {
		spec.SecurityContext.RunAsNonRoot = s.RunAsNonRoot.ValueBoolPointer()
		main.SecurityContext.Capabilities = &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}
	}
}

// mount adds claims and Secrets.
func (c containerModel) mount(spec *corev1.PodSpec, main *corev1.Container) error {
	for _, of := range c.Claims {
		name := of.ClaimName.ValueString()
		added := addVolume(spec, corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name, ReadOnly: of.ReadOnly.ValueBool()},
		})
		switch {
		case of.MountPath.IsNull() == of.DevicePath.IsNull():
			return source.Errorf("container", "claims: %s needs either mount_path or device_path", name)
		case !of.MountPath.IsNull():
			main.VolumeMounts = append(main.VolumeMounts,
				corev1.VolumeMount{Name: added, MountPath: of.MountPath.ValueString(), ReadOnly: of.ReadOnly.ValueBool()})
		default:
			main.VolumeDevices = append(main.VolumeDevices, corev1.VolumeDevice{Name: added, DevicePath: of.DevicePath.ValueString()})
		}
	}
	for _, of := range c.Secrets {
		added := addVolume(spec, corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: of.SecretName.ValueString()}})
		main.VolumeMounts = append(main.VolumeMounts,
			corev1.VolumeMount{Name: added, MountPath: of.MountPath.ValueString(), ReadOnly: true})
	}
	return nil
}

// addedVolume begins the names of volumes of attributes.
const addedVolume = "volume-"

func addVolume(spec *corev1.PodSpec, from corev1.VolumeSource) (name string) {
	name = fmt.Sprintf("%s%d", addedVolume, len(spec.Volumes))
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: name, VolumeSource: from})
	return name
}

func quantities(texts map[string]string) (corev1.ResourceList, error) {
	var wrong []error
	list := corev1.ResourceList{}
	for name, text := range texts {
		q, err := resource.ParseQuantity(text)
		if err != nil {
			wrong = append(wrong,
				source.Errorf("container", "resources: %s is %q, which is no Kubernetes quantity, such as 64Mi", name, text))
		}
		list[corev1.ResourceName(name)] = q
	}
	return list, errors.Join(wrong...)
}
