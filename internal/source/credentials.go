package source

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// libvirt's names for the types of credentials.
const (
	chapAuth = "iscsi"
	cephAuth = "ceph"
)

// SecretRef names a Kubernetes secret.
type SecretRef struct{ Namespace, Name string }

func (r SecretRef) String() string { return r.Namespace + "/" + r.Name }

// SecretReader reads Kubernetes secrets.
type SecretReader interface {
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
}

// VersionReader reads the versions of Kubernetes secrets, without their data.
type VersionReader interface {
	SecretVersion(ctx context.Context, namespace, name string) (string, error)
}

// Form is the form of credentials in a Kubernetes secret: their type, and the keys of their parts.
type Form struct {
	auth, what string
	// user and value are the keys of the user and of the password or key; user is empty if the secret has no user name.
	user, value string
	// method is a key whose value is CHAP if the secret has credentials; empty if it always has.
	method string
	// mutual are keys that must be empty.
	mutual []string
}

// The forms of Kubernetes and the CSI drivers.
var (
	// CHAP is the form of iSCSI volumes and of csi-driver-iscsi.
	CHAP = chapForm("", "")
	// OptionalCHAP is the form of democratic-csi: settings for the node database of open-iscsi, possibly without credentials.
	OptionalCHAP = chapForm("node-db.", "node-db.node.session.auth.authmethod")
	// CephKey is the form of in-tree RBD volumes, which name the user in the volume.
	CephKey = Form{auth: cephAuth, what: "key of Ceph", value: "key"}
	// CephUser is the form of ceph-csi.
	CephUser = Form{auth: cephAuth, what: "user and key of Ceph", user: "userID", value: "userKey"}
)

func chapForm(prefix, method string) Form {
	prefix += "node.session.auth."
	return Form{
		auth: chapAuth, what: "CHAP credentials", user: prefix + "username", value: prefix + "password", method: method,
		mutual: []string{prefix + "username_in", prefix + "password_in"},
	}
}

// Login is the location of a volume's credentials: their secret, and its form.
type Login struct {
	Form   Form
	Secret SecretRef
	// Username is the user if the secret does not name it.
	Username string
}

// Optional reports whether the secret may have no credentials, because the volume needs none.
func (l Login) Optional() bool { return l.Form.method != "" }

// Read reads the credentials; nil if there are none. A missing secret is a NotReady, one without the right keys an Error for attribute. No
// error contains data of the secret.
func (l Login) Read(ctx context.Context, r SecretReader, attribute string) (*volume.Credentials, error) {
	s, err := r.Secret(ctx, l.Secret.Namespace, l.Secret.Name)
	if apierrors.IsNotFound(err) {
		return nil, NotReadyf("the Secret %s with the %s does not exist: %w", l.Secret, l.Form.what, err)
	}
	if err != nil || l.Optional() && string(s.Data[l.Form.method]) != "CHAP" {
		return nil, err
	}
	c, err := l.credentials(s)
	if err != nil {
		return nil, Errorf(attribute, "the Secret %s %w", l.Secret, err)
	}
	return c, nil
}

// credentials extracts the credentials from a secret. The errors continue a sentence that begins with its name.
func (l Login) credentials(s *corev1.Secret) (*volume.Credentials, error) {
	for _, key := range l.Form.mutual {
		if len(s.Data[key]) > 0 {
			return nil, fmt.Errorf("asks for mutual CHAP (key %s), which QEMU does not support: "+
				"give this initiator one-way CHAP at the target and remove the keys that end in _in", key)
		}
	}
	username, value := l.Username, []byte(TrimLineBreak(string(s.Data[l.Form.value])))
	if l.Form.user != "" {
		username = TrimLineBreak(string(s.Data[l.Form.user]))
		if username == "" || !isVisible(username) {
			return nil, fmt.Errorf("has no value under the key %s, or no readable one: %s", l.Form.user, l.Form.rule())
		}
	}
	if len(value) == 0 {
		return nil, fmt.Errorf("has no value under the key %s: %s", l.Form.value, l.Form.rule())
	}
	if l.Form.auth == chapAuth {
		return CHAPCredentials(username, value, s.ResourceVersion), nil
	}
	if CheckCephUser(username) != nil {
		return nil, fmt.Errorf("names no user of Ceph under the key %s: %s", l.Form.user, l.Form.rule())
	}
	c, err := CephCredentials(username, value, s.ResourceVersion)
	if err != nil {
		return nil, fmt.Errorf("has no key of Ceph under the key %s: %w", l.Form.value, err)
	}
	return c, nil
}

func (f Form) rule() string {
	switch {
	case f.auth == chapAuth:
		return "a CHAP session needs a user under " + f.user + " and a password under " + f.value
	case f.user == "":
		return "an RBD volume needs the user's key, as ceph auth get-key prints it, under " + f.value
	}
	return "ceph-csi needs the user's name, without client. before it, under " + f.user + " and the key under " + f.value
}

// TrimLineBreak removes line breaks at the end of a user or password, which editors, echo and heredocs add. Spaces may belong to a
// password.
func TrimLineBreak(s string) string { return strings.TrimRight(s, "\r\n") }

// CHAPCredentials returns the credentials of an iSCSI session, without line breaks at their ends. The password is nil if it is not known
// yet.
func CHAPCredentials(username string, password []byte, version string) *volume.Credentials {
	return &volume.Credentials{
		Type: chapAuth, Username: TrimLineBreak(username), Secret: bytes.TrimRight(password, "\r\n"), Version: version,
	}
}

// CephCredentials returns the credentials of a Ceph user. key is in base64, as Ceph prints it, and libvirt needs it decoded. It is nil if
// it is not known yet. The error does not contain it.
func CephCredentials(username string, key []byte, version string) (*volume.Credentials, error) {
	decoded, err := base64.StdEncoding.Strict().DecodeString(strings.TrimSpace(string(key)))
	if err != nil || key != nil && len(decoded) == 0 {
		return nil, errors.New("it must be base64, as ceph auth get-key prints it") // the cause would contain a part of it
	}
	if key == nil {
		decoded = nil
	}
	return &volume.Credentials{Type: cephAuth, Username: username, Secret: decoded, Version: version}, nil
}

// WithCredentials returns v with a reference to these credentials; unchanged if c is nil.
func WithCredentials(v volume.Volume, c *volume.Credentials) Resolved {
	if c != nil {
		v.Images[0].Auth = &volume.Auth{Type: c.Type, Username: c.Username}
	}
	return Resolved{Volume: v, Credentials: c}
}

// CurrentVersion returns the version of a secret that is in use. A secret that is gone or may not be read is no error, because hosts have a
// copy: then version is empty, and warning has the cause.
func CurrentVersion(ctx context.Context, r VersionReader, ref SecretRef) (version, warning string, err error) {
	version, err = r.SecretVersion(ctx, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", "Whether the credentials in the Secret " + ref.String() + " have changed is not known; " +
			"the hosts keep what they have: " + err.Error(), nil
	}
	return version, "", err
}
