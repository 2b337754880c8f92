package claim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/source"
)

// Annotations of KubeVirt's Containerized Data Importer (CDI) on a claim that it fills.
const (
	cdiPhase      = "cdi.kubevirt.io/storage.pod.phase"
	cdiRunning    = "cdi.kubevirt.io/storage.condition.running"
	cdiProgress   = "cdi.kubevirt.io/storage.populator.progress"
	cdiCheckpoint = "cdi.kubevirt.io/storage.checkpoint.current"
	cdiLastDone   = "cdi.kubevirt.io/storage.checkpoint.done"
	cloneRequest  = "k8s.io/CloneRequest"
	cloneOf       = "k8s.io/CloneOf"
)

// cdiRequests are the annotations that request CDI to fill a claim.
var cdiRequests = []string{
	"cdi.kubevirt.io/storage.import.endpoint", "cdi.kubevirt.io/storage.import.source",
	"cdi.kubevirt.io/storage.upload.target",
}

// filling returns the annotation that shows that a claim is still being filled, with its value; empty if there is none. A claim that a
// populator fills (dataSourceRef) stays Pending until it is done, but CDI's own claims, and those without a populator, are bound from the
// start.
func filling(claim *corev1.PersistentVolumeClaim) string {
	a := claim.Annotations
	phase, begun := a[cdiPhase]
	shown := func(key string) string { return fmt.Sprintf("its annotation %s is %q", key, a[key]) }
	switch {
	case a[cdiCheckpoint] != "" && a[cdiLastDone] != "true":
		return shown(cdiCheckpoint)
	case phase == string(corev1.PodSucceeded):
		return ""
	case begun && a[cdiProgress] != "":
		return fmt.Sprintf("%s, and %s is %.40q", shown(cdiPhase), cdiProgress, a[cdiProgress])
	case begun:
		return shown(cdiPhase)
	case a[cdiRunning] == "true":
		return shown(cdiRunning)
	case a[cloneRequest] != "" && a[cloneOf] != "true":
		return shown(cloneRequest)
	}
	for _, key := range cdiRequests {
		if _, asked := a[key]; asked && a[cloneOf] != "true" {
			return key + " is set" // its value may be a URL with a signature
		}
	}
	return ""
}

// waits returns what a claim still waits for; empty if it is bound and filled.
func waits(claim *corev1.PersistentVolumeClaim) string {
	if isPending(claim) {
		return "Pending" + ofClass(claim)
	}
	if what := filling(claim); what != "" {
		return "being filled by CDI: " + what
	}
	return ""
}

// checkFilled refuses a claim that CDI still writes to.
func checkFilled(claim *corev1.PersistentVolumeClaim) error {
	if what := filling(claim); what != "" {
		return source.NotReadyf("the %s is still being filled by CDI: %s", refOf(claim), what)
	}
	return nil
}
