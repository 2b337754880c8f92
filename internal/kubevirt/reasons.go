package kubevirt

import "regexp"

// reasons are why fields are not carried over, by the ends of their paths.
var reasons = []struct {
	field  *regexp.Regexp
	reason string
}{
	{regexp.MustCompile(`\b(labels|annotations)\b`), "a machine here has none"},
	{
		regexp.MustCompile(`(affinity|nodeSelector|tolerations|topologySpreadConstraints|schedulerName|priorityClassName)\b`),
		"the host is chosen in the configuration",
	},
	{regexp.MustCompile(`evictionStrategy$`), "a change of the attribute host moves a machine"},
	{regexp.MustCompile(`terminationGracePeriodSeconds$`), "the guest has a minute to shut down: see force_stop"},
	{
		regexp.MustCompile(`(dedicatedCpuPlacement|dedicatedCPUPlacement|isolateEmulatorThread|numa|realtime)(\.|$)`),
		"which processors of the host are free is not in a manifest: see cpu.pin",
	},
	{regexp.MustCompile(`resources(\.|$)`), "no scheduler shares the host out"},
	{regexp.MustCompile(`kernelBoot`), "a machine boots a kernel with the attribute boot"},
	{regexp.MustCompile(`accessCredentials`), "a seed of cloud-init has keys and passwords"},
	{regexp.MustCompile(`(readinessProbe|livenessProbe|startupProbe)(\.|$)`), "only an answer of the guest agent is waited for"},
	{regexp.MustCompile(`\bports\b`), "all ports are open: the host's firewall limits them"},
	{regexp.MustCompile(`(dnsPolicy|dnsConfig|subdomain|dhcpOptions)`), "the host's network answers DNS and DHCP"},
	{regexp.MustCompile(`(pciAddress|acpiIndex)$`), "libvirt gives addresses, and keeps them"},
	{regexp.MustCompile(`hostname$`), "a seed of cloud-init has it, and the machine has none"},
	{regexp.MustCompile(`\.tag$`), "the guest is told of no tags"},
	{regexp.MustCompile(`vmI?P?v?6?NetworkCIDR$`), "the host's network has its addresses"},
	{regexp.MustCompile(`firmware\.uuid$`), "libvirt gives each machine a UUID"},
	{regexp.MustCompile(`(updateVolumesStrategy|liveUpdateFeatures)`), "what can be changed live is"},
}

// reason is why a field is not carried over.
func reason(path string) string {
	for _, r := range reasons {
		if r.field.MatchString(path) {
			return r.reason
		}
	}
	return "it has no counterpart"
}
