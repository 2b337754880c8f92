package persistentvolumeclaim

import (
	"errors"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/datasource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"
	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/reservation"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

type model struct {
	tfvalue.Claim

	UID          types.String    `tfsdk:"uid"`
	Phase        types.String    `tfsdk:"phase"`
	VolumeName   types.String    `tfsdk:"volume_name"`
	StorageClass types.String    `tfsdk:"storage_class"`
	VolumeMode   types.String    `tfsdk:"volume_mode"`
	Capacity     types.Int64     `tfsdk:"capacity"`
	AccessModes  []string        `tfsdk:"access_modes"`
	Pods         []podModel      `tfsdk:"pods"`
	Bindings     []bindingModel  `tfsdk:"bindings"`
	VolumeError  types.String    `tfsdk:"volume_error"`
	DiskXML      types.String    `tfsdk:"disk_xml"`
	SecretRef    *secretRefModel `tfsdk:"secret_ref"`
	Timeouts     timeouts.Value  `tfsdk:"timeouts"`
}

type podModel struct {
	Name     string       `tfsdk:"name"`
	ReadOnly bool         `tfsdk:"read_only"`
	Node     types.String `tfsdk:"node"`
	Phase    string       `tfsdk:"phase"`
}

type bindingModel struct {
	ID         string       `tfsdk:"id"`
	Owner      types.String `tfsdk:"owner"`
	Name       types.String `tfsdk:"name"`
	AccessMode types.String `tfsdk:"access_mode"`
}

type secretRefModel struct {
	Namespace string `tfsdk:"namespace"`
	Name      string `tfsdk:"name"`
}

// fill sets the attributes of the claim and its volume.
func (m *model) fill(seen claim.Previewed) error {
	m.showClaim(seen.Claim)
	m.VolumeError = reason(seen.Wrong)
	if seen.Volume == nil {
		return nil
	}
	v := *seen.Volume
	v.Images[0].AccessMode = volume.ReadShared
	xml, err := domainxml.DiskXML(v)
	if err != nil {
		return err
	}
	m.DiskXML = text(xml)
	if s := seen.Secret; s != nil {
		m.SecretRef = &secretRefModel{Namespace: tfvalue.Visible(s.Namespace), Name: tfvalue.Visible(s.Name)}
	}
	return nil
}

func (m *model) showClaim(c *corev1.PersistentVolumeClaim) {
	m.UID = text(string(c.UID))
	m.Phase = types.StringValue(string(corev1.ClaimPending)) // until a controller has processed it
	if c.Status.Phase != "" {
		m.Phase = text(string(c.Status.Phase))
	}
	m.VolumeName = text(c.Spec.VolumeName)
	m.StorageClass = text(storagehelpers.GetPersistentVolumeClaimClass(c))
	m.VolumeMode = types.StringValue(string(corev1.PersistentVolumeFilesystem)) // Kubernetes' default
	if c.Spec.VolumeMode != nil {
		m.VolumeMode = text(string(*c.Spec.VolumeMode))
	}
	m.Capacity = types.Int64Null()
	if size, ok := c.Status.Capacity[corev1.ResourceStorage]; ok {
		m.Capacity = types.Int64Value(size.Value())
	}
	m.AccessModes = []string{}
	for _, mode := range c.Status.AccessModes {
		m.AccessModes = append(m.AccessModes, tfvalue.Visible(string(mode)))
	}
	m.Bindings = []bindingModel{}
	for _, r := range reservation.Look(c) {
		m.Bindings = append(m.Bindings, bindingModel{
			ID: tfvalue.Visible(r.ID), Owner: text(r.Owner), Name: text(r.Name), AccessMode: text(string(r.Mode)),
		})
	}
}

func (m *model) showPods(uses []cluster.PodUse) {
	m.Pods = []podModel{}
	for _, u := range uses {
		m.Pods = append(m.Pods, podModel{
			Name: tfvalue.Visible(u.Name), ReadOnly: u.ReadOnly, Node: text(u.Node), Phase: tfvalue.Visible(string(u.Phase)),
		})
	}
}

// reason names the invalid attribute, if there is one, in a form that fits after a colon; null without an error.
func reason(err error) types.String {
	var blamed *source.Error
	switch {
	case err == nil:
		return types.StringNull()
	case errors.As(err, &blamed) && blamed.Attribute != "":
		return text(fmt.Sprintf("%s: %s", blamed.Attribute, err))
	}
	return text(err.Error())
}

// text is a text of the cluster, escaped for a terminal like diagnostics: an editor of a claim can write any annotation, and Terraform
// prints a text of several lines as it is. Null when it is empty.
func text(s string) types.String { return tfvalue.OrNull(tfvalue.Visible(s)) }
