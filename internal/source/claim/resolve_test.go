package claim_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func TestResolve_Claim(t *testing.T) {
	_, info, err := claim.Resolve(t.Context(), bound().client(t), golden, exclusive)
	if err != nil || info != (claim.Info{UID: "claim-uid"}) {
		t.Errorf("got %+v, %v", info, err)
	}
}

func TestResolve_NotReady(t *testing.T) {
	now := metav1.Now()
	tests := []struct {
		name   string
		change func(*fixture)
		want   string
	}{
		{"a missing claim", func(f *fixture) { f.claim = nil }, "PersistentVolumeClaim vms/golden does not exist"},
		{"a terminating claim", func(f *fixture) {
			f.claim.DeletionTimestamp, f.claim.Finalizers = &now, []string{"kubernetes.io/pvc-protection"}
		}, "vms/golden is being deleted"},
		{"a pending claim", func(f *fixture) { *f = *unbound() }, "vms/golden is Pending: it is not bound to a PersistentVolume yet (StorageClass fast)"},
		{"a pending claim without class", func(f *fixture) {
			*f = *unbound()
			f.claim.Spec.StorageClassName = nil
		}, "yet (no StorageClass)"},
		{"a claim that no controller has seen", func(f *fixture) { f.claim.Status.Phase = "" }, "is Pending"},
		{"a claim without consumer", func(f *fixture) {
			*f = *unbound()
			f.waitsForConsumer()
		}, "WaitForFirstConsumer"},
		{"a pending volume", func(f *fixture) { f.pv.Status.Phase = corev1.VolumePending }, "pv-golden of the PersistentVolumeClaim vms/golden is not bound yet"},
		{"a missing secret", func(f *fixture) { f.secret = nil }, "Secret vms/chap with the CHAP credentials does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := bound()
			tt.change(f)
			_, _, err := claim.Resolve(t.Context(), f.client(t), golden, exclusive)
			var notReady *source.NotReady
			if !errors.As(err, &notReady) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a NotReady with %q", err, tt.want)
			}
		})
	}
}

func TestResolve_Refused(t *testing.T) {
	filesystem, block := corev1.PersistentVolumeFilesystem, corev1.PersistentVolumeBlock
	badInitiator := "me"
	modes := func(m ...corev1.PersistentVolumeAccessMode) func(*fixture) {
		return func(f *fixture) { f.claim.Status.AccessModes = m }
	}
	writeShared := func(nodes ...string) claim.Need { return claim.Need{AccessMode: volume.WriteShared, Nodes: nodes} }
	shared := func(nodes ...string) claim.Need { return claim.Need{AccessMode: volume.ReadShared, Nodes: nodes} }
	tests := []struct {
		name   string
		change func(*fixture)
		need   claim.Need
		want   string
	}{
		{"a lost claim", func(f *fixture) { f.claim.Status.Phase = corev1.ClaimLost }, exclusive, "vms/golden is Lost: its PersistentVolume pv-golden is gone"},
		{"a volume that does not exist", func(f *fixture) { f.pv = nil }, exclusive, "bound to the PersistentVolume pv-golden, which does not exist"},
		{"a released volume", func(f *fixture) { f.pv.Status.Phase = corev1.VolumeReleased }, exclusive, "is Released, not Bound"},
		{"an available volume", func(f *fixture) { f.pv.Status.Phase = corev1.VolumeAvailable }, exclusive, "is Available, not Bound"},
		{"a failed volume", func(f *fixture) {
			f.pv.Status.Phase, f.pv.Status.Message = corev1.VolumeFailed, "no space"
		}, exclusive, `is Failed, not Bound: "no space"`},

		{"a volume of no claim", func(f *fixture) { f.pv.Spec.ClaimRef = nil }, exclusive, "belongs to no claim"},
		{"a volume of another claim", func(f *fixture) { f.pv.Spec.ClaimRef.Name = "other" }, exclusive, "belongs to the PersistentVolumeClaim vms/other"},
		{"a volume of another namespace", func(f *fixture) { f.pv.Spec.ClaimRef.Namespace = "prod" }, exclusive, "PersistentVolumeClaim prod/golden"},
		{"a volume of the claim before", func(f *fixture) { f.pv.Spec.ClaimRef.UID = "old-uid" }, exclusive, `UID "claim-uid" names the PersistentVolume pv-golden, but that one belongs to the PersistentVolumeClaim vms/golden with UID "old-uid"`},
		{"a volume that is only reserved", func(f *fixture) { f.pv.Spec.ClaimRef.UID = "" }, exclusive, `with UID ""`},

		{"modes that differ", func(f *fixture) { f.pv.Spec.VolumeMode = &filesystem }, exclusive, "is Block, but that of its PersistentVolume pv-golden is Filesystem"},
		{"a mode that is only the default", func(f *fixture) { f.claim.Spec.VolumeMode = nil }, exclusive, "is Filesystem, but that of its PersistentVolume pv-golden is Block"},
		{"a filesystem", func(f *fixture) {
			f.claim.Spec.VolumeMode, f.pv.Spec.VolumeMode = &filesystem, nil
		}, exclusive, "Use a claim with volumeMode Block, or mount_path on one host"},

		{"ROX for writing", modes(corev1.ReadOnlyMany), exclusive, "ReadOnlyMany can't be used write-exclusive"},
		{"no modes", modes(), exclusive, "(none) can't be used write-exclusive"},
		{"RWO for reading on two hosts", modes(corev1.ReadWriteOnce), shared("a", "b"), "ReadWriteOnce can't be used read-shared: on 2 hosts it needs"},
		{"RWOP for reading on two hosts", modes(corev1.ReadWriteOncePod), shared("a", "b"), "can't be used read-shared: on 2 hosts"},
		{"RWO for writing on two hosts", modes(corev1.ReadWriteOnce), writeShared("a", "b"), "ReadWriteOnce can't be used write-shared: on 2 hosts it needs ReadWriteMany"},
		{"RWOP for writing by many", modes(corev1.ReadWriteOncePod), writeShared("a"), "ReadWriteOncePod can't be used write-shared: many machines that write need ReadWriteMany"},
		{"ROX for writing by many", modes(corev1.ReadOnlyMany), writeShared("a"), "ReadOnlyMany can't be used write-shared"},
		{"a read-only volume for writing by many", func(f *fixture) {
			f.claim.Status.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
			f.pv.Spec.ISCSI.ReadOnly = true
		}, writeShared("a"), "its PersistentVolume is read-only"},
		{"no modes for reading", modes(), shared("a"), "can't be used read-shared: it needs ReadOnlyMany"},
		{"an unknown access mode", modes(corev1.ReadWriteMany), claim.Need{AccessMode: "write-some"}, "no such access mode"},
		{"a read-only volume for writing", func(f *fixture) { f.pv.Spec.ISCSI.ReadOnly = true }, exclusive, "its PersistentVolume is read-only; use access_mode read-shared"},

		{"another in-tree type", func(f *fixture) {
			f.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Flocker: &corev1.FlockerVolumeSource{}}
		}, exclusive, "(flocker, volumeMode Block) is not known"},
		{"a CSI driver", func(f *fixture) {
			f.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com"}}
		}, exclusive, "(csi with the driver ebs.csi.aws.com, volumeMode Block) is not known: name its device on the hosts with device_path"},
		{"no type", func(f *fixture) { f.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{} }, exclusive, "((none), volumeMode Block)"},

		{"another iSCSI interface", func(f *fixture) { f.pv.Spec.ISCSI.ISCSIInterface = "iser" }, exclusive, `wants the iSCSI interface "iser"`},
		{"a bad portal", func(f *fixture) { f.pv.Spec.ISCSI.TargetPortal = "2001:db8::1" }, exclusive, "targetPortal of the PersistentVolume pv-golden"},
		{"a bad IQN", func(f *fixture) { f.pv.Spec.ISCSI.IQN += "//" }, exclusive, "iqn of the PersistentVolume pv-golden"},
		{"a bad initiator", func(f *fixture) { f.pv.Spec.ISCSI.InitiatorName = &badInitiator }, exclusive, "initiatorName of the PersistentVolume pv-golden"},
		{"CHAP without a secret", func(f *fixture) { f.pv.Spec.ISCSI.SecretRef = nil }, exclusive, "chapAuthSession but no secretRef"},
		{"mutual CHAP", func(f *fixture) {
			f.secret.Data["node.session.auth.password_in"] = []byte(password)
		}, exclusive, "Secret vms/chap asks for mutual CHAP (key node.session.auth.password_in)"},
		{"a secret without user", func(f *fixture) { delete(f.secret.Data, "node.session.auth.username") }, exclusive, "no value under the key node.session.auth.username"},
		{"a secret without password", func(f *fixture) { f.secret.Data["node.session.auth.password"] = nil }, exclusive, "no value under the key node.session.auth.password"},
		{"a password that is a line break", func(f *fixture) {
			f.secret.Data["node.session.auth.password"] = []byte("\n")
		}, exclusive, "no value under the key node.session.auth.password"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := bound()
			f.claim.Spec.VolumeMode = &block
			tt.change(f)
			_, _, err := claim.Resolve(t.Context(), f.client(t), golden, tt.need)
			var wrong *source.Error
			if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want an Error with %q", err, tt.want)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
}

func TestResolve_HostPathTypes(t *testing.T) {
	filesystem := corev1.PersistentVolumeFilesystem
	for name, tt := range map[string]struct {
		path, kind    string
		want, refused string
	}{
		"a folder":           {path: "/srv/golden", kind: "DirectoryOrCreate", want: "/srv/golden/disk.img"},
		"the disk.img":       {path: "/srv/golden/disk.img", kind: "File", want: "/srv/golden/disk.img"},
		"an image":           {path: "/srv/golden.qcow2", kind: "File", refused: "is the image itself (its type is File)"},
		"an image to create": {path: "/srv/golden.raw", kind: "FileOrCreate", refused: "(its type is FileOrCreate)"},
		"a device":           {path: "/dev/vdb", kind: "BlockDevice", refused: "is no folder (its type is BlockDevice)"},
		"a socket":           {path: "/run/x.sock", kind: "Socket", refused: "is no folder (its type is Socket)"},
	} {
		t.Run(name, func(t *testing.T) {
			f, kind := bound(), corev1.HostPathType(tt.kind)
			f.claim.Spec.VolumeMode, f.pv.Spec.VolumeMode = &filesystem, &filesystem
			f.pv.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: tt.path, Type: &kind}}
			found, _, err := claim.Resolve(t.Context(), f.client(t), golden, exclusive)
			if tt.refused != "" {
				var wrong *source.Error
				if !errors.As(err, &wrong) || !strings.Contains(err.Error(), tt.refused) {
					t.Errorf("got %v, want an Error with %q", err, tt.refused)
				}
				return
			}
			if err != nil || found.Volume.Images[0].Name != tt.want || !found.DiskImage {
				t.Errorf("got %+v, %v", found, err)
			}
		})
	}
}

// Editors and echo end a value with a line break, which no target has.
func TestResolve_CHAPWithLineBreaks(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		f := bound()
		f.secret.Data["node.session.auth.username"] = []byte("golden-user" + end)
		f.secret.Data["node.session.auth.password"] = []byte(password + " " + end)
		found, _, err := claim.Resolve(t.Context(), f.client(t), golden, exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if c, auth := found.Credentials, found.Volume.Images[0].Auth; c.Username != "golden-user" || auth.Username != c.Username || string(c.Secret) != password+" " {
			t.Errorf("got %+v with a secret of %d bytes for %+v", c.Username, len(c.Secret), auth)
		}
	}
}

func TestResolve_AccessModes(t *testing.T) {
	tests := []struct {
		name string
		mode corev1.PersistentVolumeAccessMode
		need claim.Need
	}{
		{"write on RWO", corev1.ReadWriteOnce, exclusive},
		{"write on RWOP", corev1.ReadWriteOncePod, exclusive},
		{"write on RWX", corev1.ReadWriteMany, exclusive},
		{"write on RWO from two hosts", corev1.ReadWriteOnce, claim.Need{AccessMode: volume.WriteExclusive, Nodes: []string{"a", "b"}}},
		{"write from many machines on RWX from two hosts", corev1.ReadWriteMany, claim.Need{AccessMode: volume.WriteShared, Nodes: []string{"a", "b"}}},
		{"write from many machines on RWO from one host", corev1.ReadWriteOnce, claim.Need{AccessMode: volume.WriteShared, Nodes: []string{"a"}}},
		{"read on ROX from two hosts", corev1.ReadOnlyMany, claim.Need{AccessMode: volume.ReadShared, Nodes: []string{"a", "b"}}},
		{"read on RWX from two hosts", corev1.ReadWriteMany, claim.Need{AccessMode: volume.ReadShared, Nodes: []string{"a", "b"}}},
		{"read on RWO from one host", corev1.ReadWriteOnce, claim.Need{AccessMode: volume.ReadShared, Nodes: []string{"a"}}},
		{"read on RWOP from one host", corev1.ReadWriteOncePod, claim.Need{AccessMode: volume.ReadShared, Nodes: []string{"a"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := bound()
			// The modes in the status decide: they may be more or less than the requested ones.
			f.claim.Spec.AccessModes = nil
			f.claim.Status.AccessModes = []corev1.PersistentVolumeAccessMode{tt.mode}
			if _, _, err := claim.Resolve(t.Context(), f.client(t), golden, tt.need); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResolve_NodeAffinity(t *testing.T) {
	affinity := func(label, value string) *corev1.VolumeNodeAffinity {
		return &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}},
		}}}}
	}
	nodeIn := func(name, zone string) runtime.Object {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone}}}
	}
	tests := []struct {
		name     string
		affinity *corev1.VolumeNodeAffinity
		nodes    []string
		refused  string
	}{
		{"admitted by label", affinity("zone", "1"), []string{"node-a"}, ""},
		{"one of two refused by label", affinity("zone", "1"), []string{"node-a", "node-b"}, "can't be used on node-b:"},
		{"host that is no node is admitted by its name", affinity(corev1.LabelHostname, "plain"), []string{"plain"}, ""},
		{"host that is no node is refused by its name", affinity(corev1.LabelHostname, "other"), []string{"plain"}, "can't be used on plain:"},
		{"host that is no node has no zone", affinity("zone", "1"), []string{"plain"}, "can't be used on plain:"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := bound()
			f.pv.Spec.NodeAffinity = tt.affinity
			f.others = []runtime.Object{nodeIn("node-a", "1"), nodeIn("node-b", "2")}
			_, _, err := claim.Resolve(t.Context(), f.client(t), golden, claim.Need{AccessMode: volume.WriteExclusive, Nodes: tt.nodes})
			if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
				t.Errorf("got %v, want %q", err, tt.refused)
			}
		})
	}
	t.Run("nodes that may not be read go by their name", func(t *testing.T) {
		f := bound()
		f.pv.Spec.NodeAffinity = affinity(corev1.LabelHostname, "node-a")
		client := f.client(t)
		f.fails("nodes", apierrors.NewForbidden(corev1.Resource("nodes"), "node-a", nil))
		if _, _, err := claim.Resolve(t.Context(), client, golden, exclusive); err != nil {
			t.Error(err)
		}
	})
}

func TestResolve_ClusterError(t *testing.T) {
	for _, resource := range []string{"persistentvolumeclaims", "persistentvolumes", "secrets"} {
		t.Run(resource, func(t *testing.T) {
			f := bound()
			client := f.client(t)
			f.fails(resource, unavailable())
			_, _, err := claim.Resolve(t.Context(), client, golden, exclusive)
			var wrong *source.Error
			var notReady *source.NotReady
			if !apierrors.IsServiceUnavailable(err) || errors.As(err, &wrong) || errors.As(err, &notReady) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func unavailable() error {
	return apierrors.NewGenericServerResponse(http.StatusServiceUnavailable, "get", corev1.Resource("x"), "x", "starting", 0, true)
}

// fails answers each GET of the resource with err. It must be called after client.
func (f *fixture) fails(resource string, err error) {
	f.fake.PrependReactor("get", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
}
