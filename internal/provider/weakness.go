package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// weaknesses are the texts for each weakness, in the order of their warnings.
var weaknesses = []struct {
	of              host.Weakness
	summary, detail string
}{
	{host.Unencrypted, "libvirt is reached without encryption", "%s: the transport tcp encrypts nothing and asks for no password. An " +
		"attacker on the network can read and change all data, secrets of volumes included, and everyone who can reach the port is " +
		"root there. Use qemu+ssh or qemu+tls."},
	{host.NoCertificate, "Certificates of libvirt hosts are not verified", "%s: with no_verify any server is accepted as the host, " +
		"and receives all data, secrets of volumes included. Remove no_verify, and configure the authority of the hosts' " +
		"certificates with pkipath."},
	{host.NoHostKey, "Keys of SSH hosts are not verified", "%s: any server is accepted as the host, and receives all data, secrets " +
		"of volumes included. Remove known_hosts_verify=ignore or no_verify, and put the hosts' keys into a file of known hosts " +
		"(known_hosts)."},
}

// warnOfHosts warns once of each weakness, with all hosts that have it.
func warnOfHosts(hosts map[string]hostModel, diags *diag.Diagnostics) {
	weak := map[host.Weakness][]string{}
	for _, key := range slices.Sorted(maps.Keys(hosts)) {
		w := host.WeaknessOf(hosts[key].URI.ValueString())
		weak[w] = append(weak[w], key)
	}
	for _, w := range weaknesses {
		if keys := weak[w.of]; len(keys) > 0 {
			diags.AddAttributeWarning(path.Root("hosts"), w.summary, fmt.Sprintf(w.detail, "Hosts "+strings.Join(keys, ", ")))
		}
	}
}

// warnOfCluster warns of an API server whose identity is not verified.
func warnOfCluster(diags *diag.Diagnostics) {
	diags.AddAttributeWarning(path.Root("kubernetes"), "The Kubernetes API server is not verified",
		"Its certificate is not checked (insecure, or the kubeconfig's insecure-skip-tls-verify), or it is reached without "+
			"encryption (http). An attacker on the network can impersonate it, and receives the credentials. Configure the authority "+
			"of its certificate with cluster_ca_certificate.")
}
