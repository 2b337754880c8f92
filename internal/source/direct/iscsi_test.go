package direct

import (
	"context"
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

const password = "correct-horse-battery"

func valid() ISCSI {
	return ISCSI{Portal: "192.0.2.1", IQN: "iqn.2001-04.com.example:disk/", LUN: 3}
}

func TestValidate_ErrorsNameAttribute(t *testing.T) {
	tests := []struct {
		name      string
		change    func(*ISCSI)
		attribute string
		want      string
	}{
		{"portal", func(i *ISCSI) { i.Portal = "::1" }, "portal", "brackets"},
		{"iqn", func(i *ISCSI) { i.IQN = "disk" }, "iqn", `"disk" is no iSCSI name`},
		{"negative lun", func(i *ISCSI) { i.LUN = -1 }, "lun", "from 0 to 16383"},
		{"high lun", func(i *ISCSI) { i.LUN = 16384 }, "lun", "from 0 to 16383"},
		{"initiator", func(i *ISCSI) { i.Initiator = "me" }, "initiator", `"me" is no iSCSI name`},
		{"user without password", func(i *ISCSI) { i.Username = "u" }, "password_wo", "needs a password"},
		{"password of a line break", func(i *ISCSI) { i.Username, i.Password = "u", []byte("\n") }, "password_wo", "needs a password"},
		{"empty password", func(i *ISCSI) { i.Username, i.Password = "u", []byte{} }, "password_wo", "needs a password"},
		{"password without user", func(i *ISCSI) { i.Password = []byte(password) }, "username", "is missing"},
		{"user and secret", func(i *ISCSI) {
			i.Username, i.Password, i.SecretRef = "u", []byte(password), &SecretRef{Namespace: "vms", Name: "chap"}
		}, "username", "conflicts with secret_ref"},
		{"password and secret", func(i *ISCSI) {
			i.Password, i.SecretRef = []byte(password), &SecretRef{Namespace: "vms", Name: "chap"}
		}, "password_wo", "conflicts with secret_ref"},
		{"half a secret", func(i *ISCSI) { i.SecretRef = &SecretRef{Namespace: "vms"} }, "secret_ref", "both namespace and name"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := valid()
			tt.change(&i)
			err := i.Validate()
			var blamed *source.Error
			if !errors.As(err, &blamed) || blamed.Attribute != tt.attribute || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want one about %s with %q", err, tt.attribute, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), password) {
				t.Errorf("the error holds the password: %v", err)
			}
			if _, resolveErr := i.Resolve(t.Context(), nil); resolveErr == nil {
				t.Error("Resolve takes it")
			}
		})
	}
}

func TestValidate_JoinsErrors(t *testing.T) {
	err := ISCSI{Portal: "a b", IQN: "x", LUN: -1, Username: "u"}.Validate()
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 4 {
		t.Errorf("got %v", err)
	}
}

func TestResolve_PasswordWithLineBreak(t *testing.T) {
	i := valid()
	i.Username, i.Password = "u\n", []byte(password+"\n")
	found, err := i.Resolve(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if c := found.Credentials; string(c.Secret) != password || c.Username != "u" || found.Volume.Images[0].Auth.Username != "u" {
		t.Errorf("got %q with %d bytes", c.Username, len(c.Secret))
	}
}

func TestResolve(t *testing.T) {
	secrets := cluster.NewForClients("https://api", fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "vms", Name: "chap", ResourceVersion: "7"},
		Data: map[string][]byte{
			"node.session.auth.username": []byte("fromsecret"), "node.session.auth.password": []byte(password),
		},
	}), nil)
	port := int64(3260)
	want := func(auth *volume.Auth, credentials *volume.Credentials) source.Resolved {
		return source.Resolved{Credentials: credentials, Volume: volume.Volume{Images: []volume.Image{{
			Type: "network", Format: "raw", Protocol: "iscsi", Name: "iqn.2001-04.com.example:disk/3",
			Servers: []volume.Server{{Host: "192.0.2.1", Port: &port}}, Auth: auth,
		}}}}
	}
	tests := []struct {
		name   string
		change func(*ISCSI)
		want   source.Resolved
	}{
		{"no credentials", func(*ISCSI) {}, want(nil, nil)},
		{
			"user and password", func(i *ISCSI) { i.Username, i.Password, i.PasswordVersion = "u", []byte(password), "2" },
			want(&volume.Auth{Type: "iscsi", Username: "u"},
				&volume.Credentials{Type: "iscsi", Username: "u", Secret: []byte(password), Version: "2"}),
		},
		{
			"password that only apply tells", func(i *ISCSI) { i.Username, i.PasswordUnknown, i.PasswordVersion = "u", true, "2" },
			want(&volume.Auth{Type: "iscsi", Username: "u"}, &volume.Credentials{Type: "iscsi", Username: "u", Version: "2"}),
		},
		{
			"secret", func(i *ISCSI) { i.SecretRef = &SecretRef{Namespace: "vms", Name: "chap"} },
			want(&volume.Auth{Type: "iscsi", Username: "fromsecret"},
				&volume.Credentials{Type: "iscsi", Username: "fromsecret", Secret: []byte(password), Version: "7"}),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			i := valid()
			tt.change(&i)
			got, err := i.Resolve(t.Context(), secrets)
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("error %v, difference:\n%s", err, diff)
			}
		})
	}
}

func TestResolve_WithoutSecret(t *testing.T) {
	i := valid()
	i.SecretRef = &SecretRef{Namespace: "vms", Name: "gone"}
	_, err := i.Resolve(context.Background(), cluster.NewForClients("https://api", fake.NewClientset(), nil))
	var notReady *source.NotReady
	if !errors.As(err, &notReady) || !strings.Contains(err.Error(), "vms/gone") {
		t.Errorf("got %v", err)
	}
}
