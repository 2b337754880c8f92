package direct

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/cluster"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// key is the key of a Ceph user that does not exist, and keyBytes its decoded form.
var (
	keyBytes = []byte("twenty-eight bytes of a key!")
	key      = base64.StdEncoding.EncodeToString(keyBytes)
)

func TestValidate_EachSourceNamesAttribute(t *testing.T) {
	rbd := RBD{Monitors: []string{"192.0.2.1"}, Image: "disk"}
	with := func(change func(*RBD)) RBD {
		r := rbd
		change(&r)
		return r
	}
	ref := &SecretRef{Namespace: "vms", Name: "ceph"}
	const userInURL = "https://user:" + password + "@images.example/a.img"
	tests := []struct {
		name      string
		source    Source
		attribute string
		want      string
	}{
		{"rbd without monitors", with(func(r *RBD) { r.Monitors = nil }), "monitors", "no monitor"},
		{"rbd with a bad monitor", with(func(r *RBD) { r.Monitors = []string{"::1"} }), "monitors", `"::1" is no monitor: an IPv6 address needs brackets`},
		{"rbd pool", with(func(r *RBD) { r.Pool = "a/b" }), "pool", `"a/b" is no name`},
		{"rbd namespace", with(func(r *RBD) { r.Namespace = "a@b" }), "namespace", `"a@b" is no name`},
		{"rbd without image", with(func(r *RBD) { r.Image = "" }), "image", "it is empty"},
		{"rbd image with a snapshot", with(func(r *RBD) { r.Image = "disk@snap" }), "image", `"disk@snap" is no name`},
		{"rbd image with an option", with(func(r *RBD) { r.Image = "disk:conf=/x" }), "image", "a colon"},
		{"rbd image with a line break", with(func(r *RBD) { r.Image = "disk\n" }), "image", "control character"},
		{"rbd user in full", with(func(r *RBD) { r.Username, r.KeyUnknown = "client.admin", true }), "username", "write admin for client.admin"},
		{"rbd user without key", with(func(r *RBD) { r.Username = "admin" }), "key_wo", "needs a key"},
		{"rbd key without user", with(func(r *RBD) { r.Key = []byte(key) }), "username", "is missing"},
		{"rbd key that is no base64", with(func(r *RBD) { r.Username, r.Key = "admin", []byte(password+"!") }), "key_wo", "must be base64"},
		{"rbd key of spaces", with(func(r *RBD) { r.Username, r.Key = "admin", []byte(" \n") }), "key_wo", "must be base64"},
		{"rbd key and secret", with(func(r *RBD) { r.Key, r.SecretRef = []byte(key), ref }), "key_wo", "conflicts with secret_ref"},
		{"rbd half a secret", with(func(r *RBD) { r.SecretRef = &SecretRef{Name: "ceph"} }), "secret_ref", "both namespace and name"},

		{"nbd without server", NBD{}, "server", "is missing"},
		{"nbd with both", NBD{Server: "a", Socket: "/b"}, "socket", "conflicts with server"},
		{"nbd with a bad port", NBD{Server: "a:0"}, "server", "between 1 and 65535"},
		{"nbd with a relative socket", NBD{Socket: "run/nbd"}, "socket", "no absolute path"},
		{"nbd with TLS over a socket", NBD{Socket: "/run/nbd", TLS: true}, "tls", "does not leave the host"},
		{"nbd export", NBD{Server: "a", Export: "x\x00"}, "export", "no name of an NBD export"},
		{"nbd long export", NBD{Server: "a", Export: strings.Repeat("x", 4097)}, "export", "at most 4096 bytes"},

		{"gluster without servers", Gluster{Volume: "v", Path: "a"}, "servers", "no server"},
		{"gluster with a bad server", Gluster{Servers: []string{"a b"}, Volume: "v", Path: "a"}, "servers", `"a b" is no host name`},
		{"gluster volume", Gluster{Servers: []string{"a"}, Volume: "v/w", Path: "a"}, "volume", `"v/w" is no name`},
		{"gluster without path", Gluster{Servers: []string{"a"}, Volume: "v"}, "path", "path of a folder"},
		{"gluster path upwards", Gluster{Servers: []string{"a"}, Volume: "v", Path: "../w/a"}, "path", "leads upwards"},

		{"nfs server with a port", NFS{Server: "a:2049", Path: "/a"}, "server", "no host name"},
		{"nfs without server", NFS{Path: "/a"}, "server", "no host name"},
		{"nfs relative path", NFS{Server: "a", Path: "a"}, "path", "no absolute path"},
		{"nfs folder", NFS{Server: "a", Path: "/a/"}, "path", "path of a folder"},
		{"nfs path upwards", NFS{Server: "a", Path: "/a/../b"}, "path", "leads upwards"},
		{"nfs negative user", NFS{Server: "a", Path: "/a", UID: -1}, "uid", "from 0 to 2147483647"},
		{"nfs high group", NFS{Server: "a", Path: "/a", GID: 1 << 31}, "gid", "from 0 to 2147483647"},

		{"no URL", HTTP{URL: "images.example/a.img"}, "url", "is no URL"},
		{"URL that can't be read", HTTP{URL: "https://user:" + password + "@a b/%zz"}, "url", "is no URL"},
		{"URL of another scheme", HTTP{URL: "ftp://a/b"}, "url", `begins with "ftp://"`},
		{"URL with a user", HTTP{URL: userInURL}, "url", "has a user in it"},
		{"URL with a fragment", HTTP{URL: "https://a/b#c"}, "url", "write it as %23"},
		{"URL with an encoded slash", HTTP{URL: "https://a/b%2Fc"}, "url", "encoded slash"},
		{"URL with an encoded line break", HTTP{URL: "https://a/b%0Ac"}, "url", "control character"},
		{"URL upwards", HTTP{URL: "https://a/b/../c"}, "url", "leads upwards"},
		{"URL with a space in its query", HTTP{URL: "https://a/b?x=a b"}, "url", "a space as %20"},
		{"presigned URL of S3", HTTP{URL: "https://a/b?X-Amz-Expires=60&X-Amz-Signature=" + password}, "url", "is signed for GET alone (X-Amz-Signature)"},
		{"presigned URL of GCS", HTTP{URL: "https://a/b?X-Goog-Signature=" + password}, "url", "virtclaim_disk with source.url"},
		{"old presigned URL of S3", HTTP{URL: "https://a/b?AWSAccessKeyId=me&Expires=1&Signature=" + password}, "url", "(AWSAccessKeyId)"},
		{"URL with a bad port", HTTP{URL: "https://a:0/b"}, "url", "between 1 and 65535"},
		{"http that is not verified", HTTP{URL: "http://a/b", Insecure: true}, "insecure", "is for https"},

		{"relative file", File{Path: "disk.img"}, "path", "no absolute path"},
		{"file of another format", File{Path: "/a", Format: "vmdk"}, "format", "only raw and qcow2 images"},
		{"folder", File{Path: "/mnt/"}, "path", "path of a folder"},
		{"file with a line break", File{Path: "/mnt/a\nb"}, "path", "control character"},
		{"relative device", Block{Path: "sdb"}, "path", "no absolute path"},
		{"device upwards", Block{Path: "/dev/../etc/shadow"}, "path", "leads upwards"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.source.Validate()
			var blamed *source.Error
			if !errors.As(err, &blamed) || blamed.Attribute != tt.attribute || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want one about %s with %q", err, tt.attribute, tt.want)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("the error holds the password: %v", err)
			}
			if _, resolveErr := tt.source.Resolve(t.Context(), nil); resolveErr == nil {
				t.Error("Resolve takes it")
			}
		})
	}
}

func TestValidate_OnlyHTTPIsReadOnly(t *testing.T) {
	for _, s := range []Source{HTTP{URL: "http://a/b"}, HTTP{URL: "https://a/b"}, File{Path: "/a"}} {
		found, err := s.Resolve(t.Context(), nil)
		if _, isHTTP := s.(HTTP); err != nil || found.ReadOnly != isHTTP {
			t.Errorf("%+v: read-only is %v, %v", s, found.ReadOnly, err)
		}
	}
}

func TestValidate_RBDCredentials(t *testing.T) {
	secret := func(name string, data map[string][]byte) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: name, ResourceVersion: "7"}, Data: data}
	}
	secrets := cluster.NewForClients("https://api", fake.NewClientset(
		secret("csi", map[string][]byte{"userID": []byte("csi-user"), "userKey": []byte(key + "\n")}),
		secret("in-tree", map[string][]byte{"key": []byte(key)}),
	), nil)
	tests := []struct {
		name string
		rbd  RBD
		want *volume.Credentials
	}{
		{"none", RBD{}, nil},
		{"key", RBD{Username: "u", Key: []byte(key), KeyVersion: "2"}, &volume.Credentials{Type: "ceph", Username: "u", Secret: keyBytes, Version: "2"}},
		{"key that only apply tells", RBD{Username: "u", KeyUnknown: true, KeyVersion: "2"}, &volume.Credentials{Type: "ceph", Username: "u", Version: "2"}},
		{
			"secret with user",
			RBD{SecretRef: &SecretRef{Namespace: "vms", Name: "csi"}},
			&volume.Credentials{Type: "ceph", Username: "csi-user", Secret: keyBytes, Version: "7"},
		},
		{
			"secret with key only",
			RBD{Username: "u", SecretRef: &SecretRef{Namespace: "vms", Name: "in-tree"}},
			&volume.Credentials{Type: "ceph", Username: "u", Secret: keyBytes, Version: "7"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rbd.Monitors, tt.rbd.Image = []string{"192.0.2.1"}, "disk"
			got, err := tt.rbd.Resolve(t.Context(), secrets)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Credentials); diff != "" {
				t.Errorf("the credentials differ:\n%s", diff)
			}
			if auth := got.Volume.Images[0].Auth; (auth == nil) != (tt.want == nil) || auth != nil && (auth.Type != "ceph" || auth.Username != tt.want.Username) {
				t.Errorf("the volume asks for %+v", auth)
			}
		})
	}
}

func TestValidate_RBDNamespaceWarns(t *testing.T) {
	found, err := RBD{Monitors: []string{"192.0.2.1"}, Namespace: "team", Image: "disk"}.Resolve(t.Context(), nil)
	if err != nil || len(found.Warnings) != 1 || !strings.Contains(found.Warnings[0], "rbd/team/disk is in the RADOS namespace team") {
		t.Errorf("got %q, %v", found.Warnings, err)
	}
}
