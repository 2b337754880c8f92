package pods

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/podwire"
)

const (
	// commandLabel is what bindings recognize a pod by that fills its claim; its value is the command.
	commandLabel = "virtclaim.io/volume-pod"
	// user is that of the volume image.
	user = 65532
	// endSeconds is how long the container may take to end; it takes one at most.
	endSeconds = 10
)

// pod is a pod of a command of the volume image, like those in the examples. A failed one is kept, because it has the reason.
func (p Filler) pod(command string, args []string) *corev1.Pod {
	meta := p.managed().Meta()
	meta.Labels[commandLabel] = command
	main := corev1.Container{
		Name: container, Image: p.Image, Args: p.args(command, args),
		SecurityContext: &corev1.SecurityContext{
			ReadOnlyRootFilesystem: new(true), AllowPrivilegeEscalation: new(false),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
		Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}},
	}
	security := &corev1.PodSecurityContext{SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}}
	if p.Block {
		security.RunAsUser = new(int64(0)) // the device belongs to root, unless the container runtime gives it to the pod's user
		main.VolumeDevices = []corev1.VolumeDevice{{Name: "volume", DevicePath: podwire.Path}}
	} else {
		security.RunAsNonRoot, security.RunAsUser, security.FSGroup = new(true), new(int64(user)), new(int64(user))
		main.VolumeMounts = []corev1.VolumeMount{{Name: "volume", MountPath: podwire.Path}}
	}
	main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "scratch", MountPath: "/scratch"})
	volumes := []corev1.Volume{
		{
			Name:         "volume",
			VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: p.Claim}},
		},
		{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
	}
	if command == "upload" {
		main.Ports = []corev1.ContainerPort{{ContainerPort: podwire.Port}}
		main.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: podwire.HealthPath, Port: intstr.FromInt32(podwire.Port), Scheme: corev1.URISchemeHTTPS,
		}}}
		main.VolumeMounts = append(main.VolumeMounts, corev1.VolumeMount{Name: "token", MountPath: "/token", ReadOnly: true})
		volumes = append(volumes,
			corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: meta.Name}}})
	}
	return &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: new(false),
		TerminationGracePeriodSeconds: new(int64(endSeconds)),
		NodeSelector:                  p.NodeSelector, SecurityContext: security, Containers: []corev1.Container{main}, Volumes: volumes,
	}}
}

// args are the arguments of a command; flags come first.
func (p Filler) args(command string, args []string) []string {
	all := []string{command}
	if command != "erase" {
		all = append(all, "-scratch=/scratch")
		if p.Overwrite {
			all = append(all, "-overwrite")
		}
	}
	return slices.Concat(all, args)
}
