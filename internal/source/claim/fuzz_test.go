package claim_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/claim"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// fuzzed returns the fuzzer's input for every read of a claim.
type fuzzed struct {
	pv        *corev1.PersistentVolume
	claim     *corev1.PersistentVolumeClaim
	secret    map[string][]byte
	configMap string
	address   string
}

func (f fuzzed) Claim(context.Context, string, string) (*corev1.PersistentVolumeClaim, error) {
	return f.claim, nil
}

func (f fuzzed) Volume(context.Context, string) (*corev1.PersistentVolume, error) { return f.pv, nil }

func (f fuzzed) StorageClass(context.Context, string) (*storagev1.StorageClass, error) {
	return &storagev1.StorageClass{}, nil
}

func (f fuzzed) Node(context.Context, string) (*corev1.Node, error) { return &corev1.Node{}, nil }

func (f fuzzed) Secret(context.Context, string, string) (*corev1.Secret, error) {
	return &corev1.Secret{Data: f.secret}, nil
}

func (f fuzzed) SecretVersion(context.Context, string, string) (string, error) { return "1", nil }

func (f fuzzed) ConfigMap(context.Context, string, string) (*corev1.ConfigMap, error) {
	return &corev1.ConfigMap{Data: map[string]string{"config.json": f.configMap, "csi-cluster-config-json": f.configMap}}, nil
}

//nolint:staticcheck // what a GlusterFS volume refers to
func (f fuzzed) Endpoints(context.Context, string, string) (*corev1.Endpoints, error) {
	return gluster(f.address), nil
}

func newFuzzed(s corev1.PersistentVolumeSource, mode corev1.PersistentVolumeMode, user string, value []byte, configMap, address string) fuzzed {
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	return fuzzed{
		claim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "golden", UID: "claim-uid"},
			Spec:       corev1.PersistentVolumeClaimSpec{VolumeName: "pv-golden", VolumeMode: &mode},
			Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes},
		},
		pv: &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pv-golden"},
			Spec: corev1.PersistentVolumeSpec{
				VolumeMode: &mode, PersistentVolumeSource: s,
				ClaimRef: &corev1.ObjectReference{Namespace: "vms", Name: "golden", UID: "claim-uid"},
			},
			Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
		},
		secret: map[string][]byte{
			"node.session.auth.username": []byte(user), "node.session.auth.password": value,
			"node-db.node.session.auth.authmethod": []byte("CHAP"),
			"node-db.node.session.auth.username":   []byte(user), "node-db.node.session.auth.password": value,
			"userID": []byte(user), "userKey": value, "key": value,
		},
		configMap: configMap, address: address,
	}
}

// FuzzResolve feeds arbitrary volumes to the translation. Accepted ones must be unchanged after a round trip
// through libvirt's XML, so that no name has become an element, and no text may contain the secret.
func FuzzResolve(f *testing.F) {
	addManifests(f)
	f.Fuzz(func(t *testing.T, manifest []byte, which uint8, text string, block, force bool, user string, value []byte,
		configMap, address, mountPath, monitor string,
	) {
		var s corev1.PersistentVolumeSource
		if json.Unmarshal(manifest, &s) != nil {
			return
		}
		graft(&s, which, text)
		mode := corev1.PersistentVolumeFilesystem
		if block {
			mode = corev1.PersistentVolumeBlock
		}
		options := claim.Options{ForceBlock: force, MountPath: mountPath}
		if strings.HasPrefix(mountPath, "/dev/") {
			options.MountPath, options.DevicePath = "", mountPath
		}
		if monitor != "" {
			options.Monitors = []string{monitor}
		}
		said, images := translate(t, newFuzzed(s, mode, user, value, configMap, address), options)
		if len(images) > 0 {
			checkDevice(t, images)
		}
		// The texts must be the same with another secret: then they contain nothing of it.
		saidOfOther, _ := translate(t, newFuzzed(s, mode, user, other(value), configMap, address), options)
		if diff := cmp.Diff(said, saidOfOther); diff != "" {
			t.Errorf("what is said depends on the secret:\n%s", diff)
		}
	})
}

// graft replaces one of the texts of a volume: a fuzzer seldom generates JSON.
func graft(s *corev1.PersistentVolumeSource, which uint8, text string) {
	var places []func()
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Struct:
			for n := range v.NumField() {
				walk(v.Field(n))
			}
		case reflect.Slice:
			for n := range v.Len() {
				walk(v.Index(n))
			}
		case reflect.Map:
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
			for _, key := range keys {
				places = append(places, func() { v.SetMapIndex(key, reflect.ValueOf(text)) })
			}
		case reflect.String:
			places = append(places, func() { v.SetString(text) })
		default:
		}
	}
	walk(reflect.ValueOf(s))
	if text != "" && len(places) > 0 {
		places[int(which)%len(places)]()
	}
}

// translate resolves and refreshes a claim. It returns all resulting texts, and the images, if any.
func translate(t *testing.T, r fuzzed, options claim.Options) (said []string, images []volume.Image) {
	t.Helper()
	found, _, err := claim.Resolve(t.Context(), r, golden, claim.Need{AccessMode: volume.ReadShared, Nodes: []string{"a"}, Options: options})
	refreshed, refreshErr := claim.Refresh(t.Context(), r, golden, options, claim.Last{Auth: &volume.Auth{}})
	if refreshErr != nil {
		t.Errorf("a cluster that answers fails a refresh: %v", refreshErr)
	}
	said = slices.Concat(found.Warnings, refreshed.Warnings)
	if err == nil {
		return append(said, found.Volume.Images[0].Name), found.Volume.Images
	}
	var wrong *source.Error
	var notReady *source.NotReady
	if !errors.As(err, &wrong) && !errors.As(err, &notReady) {
		t.Errorf("neither an Error nor a NotReady: %v", err)
	}
	return append(said, err.Error()), nil
}

// addManifests adds the golden files to the fuzzer's corpus.
func addManifests(f *testing.F) {
	f.Helper()
	manifests, err := filepath.Glob("testdata/*.yaml")
	more, moreErr := filepath.Glob("testdata/refused/*.yaml")
	if err := errors.Join(err, moreErr); err != nil {
		f.Fatal(err)
	}
	for _, manifest := range append(manifests, more...) {
		var pv *corev1.PersistentVolume
		text := ""
		for _, object := range decode(f, manifest) {
			switch o := object.(type) {
			case *corev1.PersistentVolume:
				pv = o
			case *corev1.ConfigMap:
				for _, value := range o.Data {
					text = value
				}
			}
		}
		block := pv.Spec.VolumeMode != nil && *pv.Spec.VolumeMode == corev1.PersistentVolumeBlock
		key := []byte(base64.StdEncoding.EncodeToString([]byte(password)))
		f.Add(canonical(f, pv.Spec.PersistentVolumeSource), uint8(0), "", block, false, "user", key, text, "192.0.2.1", "", "")
		f.Add(canonical(f, pv.Spec.PersistentVolumeSource), uint8(0), "", false, !block, "us<er", []byte(password), text, "::1", "", "[v2:a:3300/0,v1:a:6789/0]")
		for which := range uint8(8) {
			f.Add(canonical(f, pv.Spec.PersistentVolumeSource), which, "/a'<b>/&\"\x01", block, !block, "us<er", key, text, "a", "", "a")
		}
		f.Add(canonical(f, pv.Spec.PersistentVolumeSource), uint8(0), "", false, false, "user", key, text, "a", "/mnt/'<&>\"", "")
		f.Add(canonical(f, pv.Spec.PersistentVolumeSource), uint8(0), "", true, false, "user", key, text, "a", "/dev/a/{.spec.csi.volumeHandle}", "")
	}
}

func canonical(t testing.TB, s corev1.PersistentVolumeSource) []byte {
	t.Helper()
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		t.Fatal(err)
	}
	return text.Bytes()
}

// checkDevice builds the device of a volume, and parses it in two ways: as the volume, and element by element.
func checkDevice(t *testing.T, images []volume.Image) {
	t.Helper()
	top := images[0]
	text, err := deviceXML(volume.Volume{Images: images}, volume.ReadShared)
	if err != nil {
		t.Fatalf("no device of %+v: %v", top, err)
	}
	m, err := domainxml.Parse("<domain type='kvm'><name>m</name><devices>" + text + "</devices></domain>")
	if err != nil {
		t.Fatal(err)
	}
	want := top
	want.AccessMode = volume.ReadShared
	if top.Auth != nil {
		want.Auth = &volume.Auth{Type: top.Auth.Type, Username: top.Auth.Username, SecretUUID: "5f0c6f1e-58f5-5c80-9b57-0d3a2f6f8a11"}
	}
	if diff := cmp.Diff(want, m.Disks["disk"].Volume.Images[0]); diff != "" {
		t.Errorf("read back differs (-volume +read) in:\n%s\n%s", text, diff)
	}
	expected := map[string]int{"disk": 1, "driver": 1, "source": 1, "target": 1, "alias": 1, "readonly": 1, "shareable": 1, "host": len(top.Servers)}
	if top.Auth != nil {
		expected["auth"], expected["secret"] = 1, 1
	}
	if top.Initiator != "" {
		expected["initiator"], expected["iqn"] = 1, 1
	}
	if top.User != "" {
		expected["identity"] = 1
	}
	got := elements(t, text)
	for name, n := range expected {
		if n == 0 {
			delete(expected, name)
		}
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Errorf("the elements differ in:\n%s\n%s", text, diff)
	}
}

func elements(t *testing.T, text string) map[string]int {
	t.Helper()
	counted := map[string]int{}
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return counted
		}
		if err != nil {
			t.Fatal(err)
		}
		if start, ok := token.(xml.StartElement); ok {
			counted[start.Name.Local]++
		}
	}
}

// other returns another secret that is as valid as value.
func other(value []byte) []byte {
	decoded, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(value)))
	switch {
	case len(value) == 0:
		return nil
	case err != nil || len(decoded) == 0:
		return []byte("!another one!")
	}
	for n := range decoded {
		decoded[n] ^= 0x55
	}
	return []byte(base64.StdEncoding.EncodeToString(decoded))
}
