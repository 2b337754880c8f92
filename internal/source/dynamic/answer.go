// Package dynamic has volumes that are made on demand, by a server that has them, or by a pod for each of them. The guide on dynamic
// volumes has the protocol.
package dynamic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/direct"
)

// Answer is where a volume is. Exactly one of its fields is set.
type Answer struct {
	// Claim is the name of a PersistentVolumeClaim, and Namespace its namespace.
	Claim, Namespace string
	ISCSI            *direct.ISCSI `json:",omitempty"`
	RBD              *direct.RBD   `json:",omitempty"`
	NBD              *direct.NBD   `json:",omitempty"`
}

// Fingerprint distinguishes answers; it is empty without one.
func (a *Answer) Fingerprint() string {
	if a == nil {
		return ""
	}
	text, _ := json.Marshal(a) // strings and numbers can always be marshaled
	return RevisionOf(string(text))
}

// MaxAnswer is the greatest size of an answer, in bytes.
const MaxAnswer = 64 << 10

// document is an answer as it is written. Field names are matched without regard to case.
type document struct {
	PVC *struct {
		ClaimName string `json:"claimName"`
	} `json:"pvc"`
	ISCSI *iscsiDocument `json:"iscsi"`
	// LUN may be beside iscsi, or inside.
	LUN *intstr.IntOrString `json:"lun"`
	RBD *struct {
		Monitors  []string   `json:"monitors"`
		Pool      string     `json:"pool"`
		Namespace string     `json:"namespace"`
		Image     string     `json:"image"`
		Username  string     `json:"username"`
		SecretRef *secretRef `json:"secretRef"`
	} `json:"rbd"`
	NBD *struct {
		Server string `json:"server"`
		Export string `json:"export"`
		TLS    bool   `json:"tls"`
	} `json:"nbd"`
}

type iscsiDocument struct {
	Host struct {
		Name string              `json:"name"`
		Port *intstr.IntOrString `json:"port"`
	} `json:"host"`
	// Portal is the name of the target, as the design of KubeVirt's disks has it.
	Portal string              `json:"portal"`
	LUN    *intstr.IntOrString `json:"lun"`
	// InitiatorName is the name with which to log in; empty if any will do.
	InitiatorName string     `json:"initiatorName"`
	SecretRef     *secretRef `json:"secretRef"`
}

type secretRef struct {
	Name string `json:"name"`
}

// Parse reads an answer in YAML. The claims and Secrets that it names are in the namespace; empty if there is none, then it must not name
// any.
func Parse(text []byte, namespace string) (a Answer, err error) {
	var d document
	if err := yaml.UnmarshalStrict(text, &d); err != nil {
		return a, fmt.Errorf("it is not of the form that the guide on dynamic volumes describes: %q", err.Error())
	}
	kinds := 0
	for _, is := range []bool{d.PVC != nil, d.ISCSI != nil, d.RBD != nil, d.NBD != nil} {
		if is {
			kinds++
		}
	}
	if kinds != 1 || d.LUN != nil && d.ISCSI == nil {
		return a, errors.New("it must have exactly one of pvc, iscsi (with lun), rbd and nbd")
	}
	r := reader{namespace: namespace}
	switch {
	case d.PVC != nil:
		a.Claim, a.Namespace = r.name("claimName", d.PVC.ClaimName), namespace
	case d.ISCSI != nil:
		a.ISCSI = r.iscsi(d.ISCSI, d.LUN)
	case d.RBD != nil:
		a.RBD = &direct.RBD{
			Monitors: d.RBD.Monitors, Pool: d.RBD.Pool, Namespace: d.RBD.Namespace, Image: d.RBD.Image, Username: d.RBD.Username,
			SecretRef: r.secret(d.RBD.SecretRef),
		}
		r.add(a.RBD.Validate())
	default:
		a.NBD = &direct.NBD{Server: d.NBD.Server, Export: d.NBD.Export, TLS: d.NBD.TLS}
		r.add(a.NBD.Validate())
	}
	return a, errors.Join(r.wrong...)
}

// reader collects what is wrong with an answer.
type reader struct {
	namespace string
	wrong     []error
}

func (r *reader) add(err error) {
	if err != nil {
		r.wrong = append(r.wrong, err)
	}
}

func (r *reader) iscsi(d *iscsiDocument, beside *intstr.IntOrString) *direct.ISCSI {
	if beside != nil && d.LUN != nil {
		r.add(errors.New("it has lun twice: inside iscsi, and beside"))
	}
	if beside == nil {
		beside = d.LUN
	}
	if d.Host.Name == "" {
		r.add(errors.New("iscsi.host.name is missing"))
	}
	i := &direct.ISCSI{IQN: d.Portal, LUN: r.number("lun", beside), Initiator: d.InitiatorName, SecretRef: r.secret(d.SecretRef)}
	i.Portal = d.Host.Name
	if host, err := source.ParseHost(d.Host.Name); err == nil {
		i.Portal = net.JoinHostPort(host, "3260")
		if d.Host.Port != nil {
			i.Portal = net.JoinHostPort(host, strconv.FormatInt(r.number("host.port", d.Host.Port), 10))
		}
	}
	r.add(i.Validate())
	return i
}

func (r *reader) number(field string, n *intstr.IntOrString) int64 {
	if n == nil {
		r.add(fmt.Errorf("%s is missing", field))
		return 0
	}
	value, err := strconv.ParseUint(n.String(), 10, 31)
	if err != nil {
		r.add(fmt.Errorf("%s is %q, which is no number", field, n.String()))
	}
	return int64(value)
}

func (r *reader) secret(ref *secretRef) *direct.SecretRef {
	if ref == nil {
		return nil
	}
	return &direct.SecretRef{Namespace: r.namespace, Name: r.name("secretRef.name", ref.Name)}
}

// name is the checked name of an object in the namespace.
func (r *reader) name(field, name string) string {
	if wrong := validation.IsDNS1123Subdomain(name); len(wrong) > 0 {
		r.add(fmt.Errorf("%s is %.300q: %s", field, name, wrong[0]))
	} else if r.namespace == "" {
		r.add(fmt.Errorf("it names %q of a cluster: set the namespace in which it may name claims and Secrets", name))
	}
	return name
}
