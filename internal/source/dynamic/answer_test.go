package dynamic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/direct"
)

func TestParse(t *testing.T) {
	chap := &direct.SecretRef{Namespace: "vms", Name: "chap"}
	tests := map[string]struct {
		text string
		want Answer
	}{
		"the design's claim": {"pvc:\n  claimname: some-pvc-name\n", Answer{Claim: "some-pvc-name", Namespace: "vms"}},
		"a claim":            {"pvc: {claimName: some-pvc-name}", Answer{Claim: "some-pvc-name", Namespace: "vms"}},
		"the design's unit": {
			"iscsi:\n  host:\n    name: iscsi-demo-target\n    port: \"3260\"\n  portal: iqn.2017-01.io.kubevirt:sn.42\nlun: 2\n",
			Answer{ISCSI: &direct.ISCSI{Portal: "iscsi-demo-target:3260", IQN: "iqn.2017-01.io.kubevirt:sn.42", LUN: 2}},
		},
		"a unit inside": {
			"iscsi: {host: {name: 192.0.2.1, port: 860}, portal: iqn.2017-01.io.kubevirt:sn.42, lun: \"0\", initiatorName: 'iqn.2026-01.org.example:a', secretRef: {name: chap}}",
			Answer{ISCSI: &direct.ISCSI{
				Portal: "192.0.2.1:860", IQN: "iqn.2017-01.io.kubevirt:sn.42", Initiator: "iqn.2026-01.org.example:a", SecretRef: chap,
			}},
		},
		"the default port": {
			"iscsi: {host: {name: '2001:db8::1'}, portal: iqn.2017-01.io.kubevirt:sn.42, lun: 1}",
			Answer{ISCSI: &direct.ISCSI{Portal: "[2001:db8::1]:3260", IQN: "iqn.2017-01.io.kubevirt:sn.42", LUN: 1}},
		},
		"in JSON": {`{"nbd": {"server": "192.0.2.1:10809", "export": "disk"}}`, Answer{NBD: &direct.NBD{Server: "192.0.2.1:10809", Export: "disk"}}},
		"an image of Ceph": {
			"rbd: {monitors: [192.0.2.1], image: disk, username: vms, secretRef: {name: chap}}",
			Answer{RBD: &direct.RBD{Monitors: []string{"192.0.2.1"}, Image: "disk", Username: "vms", SecretRef: chap}},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(tt.text), "vms")
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("%v %s", err, diff)
			}
		})
	}
}

func TestParse_Refused(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for n := 'b'; n < 'k'; n++ {
		before := string(n - 1)
		bomb += string(n) + ": &" + string(n) + " [" + strings.TrimSuffix(strings.Repeat("*"+before+",", 9), ",") + "]\n"
	}
	tests := map[string]struct{ text, wrong string }{
		"nothing":                     {"", "exactly one"},
		"a text":                      {"hello", "not of the form"},
		"a page":                      {"<html>\n<body>404: Not found</body></html>", "not of the form"},
		"two":                         {"pvc: {claimName: a}\nnbd: {server: a}", "exactly one"},
		"a claim with a lun":          {"pvc: {claimName: a}\nlun: 1", "exactly one"},
		"a claim of another's":        {"pvc: {namespace: kube-system, claimName: a}", `unknown field \"namespace\"`},
		"a path for a name":           {"pvc: {claimName: ../../secrets/a}", "claimName"},
		"no name":                     {"pvc: {}", "claimName"},
		"a file":                      {"file: {path: /etc/shadow}", `unknown field \"file\"`},
		"a socket":                    {"nbd: {socket: /run/nbd}", `unknown field \"socket\"`},
		"a password":                  {"iscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a', lun: 1, password: secret}", "unknown field"},
		"a Secret of another's":       {"iscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a', lun: 1, secretRef: {namespace: b, name: c}}", "unknown field"},
		"no lun":                      {"iscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a'}", "lun is missing"},
		"two luns":                    {"lun: 1\niscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a', lun: 1}", "lun twice"},
		"a lun that is none":          {"iscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a', lun: -1}", "no number"},
		"a great lun":                 {"iscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a', lun: 70000}", "logical unit number"},
		"a port that is none":         {"iscsi: {host: {name: a, port: 0x}, portal: 'iqn.2017-01.io.kubevirt:a', lun: 1}", "no number"},
		"no host":                     {"iscsi: {portal: 'iqn.2017-01.io.kubevirt:a', lun: 1}", "host.name is missing"},
		"a host with options of QEMU": {"iscsi: {host: {name: 'a,file=/etc/shadow'}, portal: 'iqn.2017-01.io.kubevirt:a', lun: 1}", "no iSCSI portal"},
		"a name with a slash":         {"iscsi: {host: {name: a}, portal: 'iqn.2017-01.io.kubevirt:a/1', lun: 1}", "no iSCSI name"},
		"a field twice":               {"pvc: {claimName: a}\npvc: {claimName: b}", "already"},
		"a bomb":                      {bomb, "not of the form"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := Parse([]byte(tt.text), "vms"); err == nil || !strings.Contains(err.Error(), tt.wrong) {
				t.Errorf("got %v and the error %v", got, err)
			}
		})
	}
	if _, err := Parse([]byte("pvc: {claimName: a}"), ""); err == nil || !strings.Contains(err.Error(), "set the namespace") {
		t.Errorf("without a namespace: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("pvc:\n  claimname: some-pvc-name\n"))
	f.Add([]byte("iscsi:\n  host:\n    name: a\n    port: \"3260\"\n  portal: iqn.2017-01.io.kubevirt:sn.42\nlun: 2\n"))
	f.Add([]byte("rbd: {monitors: [192.0.2.1], image: disk, username: vms, secretRef: {name: chap}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		a, err := Parse(text, "vms")
		if err != nil {
			return
		}
		if a.Claim != "" && a.Namespace != "vms" {
			t.Errorf("a claim of %q", a.Namespace)
		}
		for _, ref := range []*direct.SecretRef{ref(a.ISCSI != nil, func() *direct.SecretRef { return a.ISCSI.SecretRef }), ref(a.RBD != nil, func() *direct.SecretRef { return a.RBD.SecretRef })} {
			if ref != nil && ref.Namespace != "vms" {
				t.Errorf("a Secret of %q", ref.Namespace)
			}
		}
	})
}

func ref(is bool, of func() *direct.SecretRef) *direct.SecretRef {
	if !is {
		return nil
	}
	return of()
}
