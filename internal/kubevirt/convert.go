// Package kubevirt turns manifests of KubeVirt's VirtualMachines into the attributes of this provider's resources. It is pure.
package kubevirt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// converter turns the manifest of one machine into values.
type converter struct {
	machine *node
	// others are further objects, to which that of the machine may refer. Those that it refers to are read.
	others []*node
	// spec is that of the VirtualMachineInstance, and domain what is below it.
	spec, domain *node
	// instance and preference are the specs of an instance type and of a preference; nil without.
	instance, preference *node
	namespace            string
	// result is all that is made of the manifest, and to its machine.
	result, to values
	problems   []error
}

// machines are the kinds of objects with one machine, also those of earlier versions.
var machines = []string{"VirtualMachine", "VirtualMachineInstance", "VM", "VMI", "OfflineVirtualMachine"}

// Convert turns the manifest of a machine into values, which have the Shape. Beside it, and in further manifests, may be what the machine
// refers to: an instance type, a preference, DataVolumes, ConfigMaps and Secrets. An error names the line of a written manifest, and the
// field.
func Convert(first Manifest, further ...Manifest) (map[string]any, error) {
	c := &converter{result: values{}}
	for i, m := range append([]Manifest{first}, further...) {
		objects, err := parse(m.Text, &manifest{m.Written, &c.problems})
		if err != nil && i > 0 {
			err = fmt.Errorf("further manifest %d: %w", i, err)
		}
		if err != nil {
			return nil, err
		}
		for _, root := range objects {
			c.sort(root)
		}
	}
	if c.machine == nil && len(c.others) == 0 {
		return nil, fmt.Errorf("the manifest is empty: give a %s or %s", machines[0], machines[1])
	}
	for _, step := range []func(){c.begin, c.read} {
		if len(c.problems) == 0 {
			step()
		}
	}
	switch len(c.problems) {
	case 0:
		return c.result, nil
	case 1:
		return nil, c.problems[0]
	}
	return nil, fmt.Errorf("%w (and %d more)", c.problems[0], len(c.problems)-1)
}

// sort takes an object for the machine's, or for one to which that may refer. One without a kind may be a part of a machine, as documents
// show it.
func (c *converter) sort(root *node) {
	kind := root.at("kind").or("")
	isPart := kind == "" && (root.at("spec.domain") != nil || root.at("disks") != nil)
	switch {
	case !isPart && !slices.Contains(machines, kind):
		root.name = strings.TrimSpace(cmp.Or(kind, "an object") + " " + root.at("metadata.name").or(""))
		c.others = append(c.others, root)
	case c.machine != nil:
		cmp.Or(root.at("kind"), root).refuse("a second machine: give each one's manifest to a call of its own")
	default:
		c.machine = root
	}
}

// find is one of the other objects, or a DataVolume that the machine has a template of; nil if it is not given.
func (c *converter) find(kind, name string) *node {
	hasNoNamespace := kind == "DataVolume" || strings.HasPrefix(kind, "VirtualMachineCluster")
	for _, o := range append(slices.Clone(c.others), c.machine.each("spec.dataVolumeTemplates")...) {
		isKind := strings.EqualFold(o.at("kind").or(""), kind) || o.parent != nil && kind == "DataVolume"
		isHere := hasNoNamespace || o.at("metadata.namespace").or(c.namespace) == c.namespace
		if isKind && isHere && o.at("metadata.name").or("") == name {
			o.read = true
			return o
		}
	}
	return nil
}

// recorded are fields that the cluster writes.
var recorded = []string{
	"apiVersion", "kind", "status", "metadata.creationTimestamp", "metadata.generation", "metadata.managedFields", "metadata.uid",
	"metadata.resourceVersion", "metadata.selfLink", "metadata.finalizers", "metadata.ownerReferences",
}

// begin finds the machine's spec, and what that refers to.
func (c *converter) begin() {
	root := c.machine
	if root == nil {
		other := c.others[0]
		cmp.Or(other.at("kind"), other).refuse("it is no machine: that is a %s or %s", machines[0], machines[1])
		return
	}
	root.skip(recorded...)
	c.namespace = root.at("metadata.namespace").or("default")
	c.to = c.result.below("machine")
	for _, name := range []string{"disks", "bindings", "contents", "secrets"} { // expressions iterate over them
		c.result.below(name)
	}
	for _, name := range []string{"disks", "interfaces", "filesystems", "host_devices"} {
		c.to.below(name)
	}
	c.spec = root.at("spec")
	if template := root.at("spec.template"); template != nil {
		template.set("metadata")
		template.skip(recorded...)
		c.spec = template.at("spec")
		c.instance, c.preference = c.reference("instancetype"), c.reference("preference")
	}
	for _, template := range root.each("spec.dataVolumeTemplates") {
		template.skip(recorded...)
	}
	if c.isPart() {
		c.spec = &node{parent: root, fields: map[string]*node{"domain": {parent: root, fields: map[string]*node{"devices": root}}}}
	}
	c.domain = c.spec.at("domain")
	if c.domain == nil {
		cmp.Or(c.spec, root).refuse("it has no spec of a VirtualMachineInstance, with a domain")
	}
	for _, name := range []string{"cpu", "memory", "resources", "firmware", "clock", "features", "devices"} {
		if at := c.domain.at(name); at != nil && at.fields == nil {
			at.refuse("it is no object")
		}
	}
}

// isPart reports whether the manifest is no more than a list of disks.
func (c *converter) isPart() bool { return c.machine.at("spec") == nil && c.machine.at("disks") != nil }

// reference is the spec of what a field of a VirtualMachine refers to, among the other objects.
func (c *converter) reference(field string) *node {
	from := c.machine.at("spec." + field)
	from.at("revisionName").leave("the manifest that is given counts")
	name, kind := from.at("name"), from.at("kind").or("VirtualMachineCluster"+field)
	if infer := from.at("inferFromVolume"); infer != nil && name == nil {
		infer.refuse("what the volume says is in the cluster: write the name")
	}
	if name == nil {
		return nil
	}
	found := c.find(kind, name.or(""))
	if found == nil {
		name.refuse("the %s %.60q has a part of the machine: give its manifest as a further argument", kind, name.text)
	}
	return found.at("spec")
}

// meaningful are annotations that change the machine: Ignition's configuration, and programs that rewrite libvirt's XML.
var meaningful = []string{"kubevirt.io/ignitiondata", "hooks.kubevirt.io/hookSidecars"}

// read reads all of the machine's manifest.
func (c *converter) read() {
	if security := c.first(c.domain, "launchSecurity|instancetype.launchSecurity"); security != nil {
		security.refuse("the guest's memory would not be encrypted: remove it, and see domain_xml")
	}
	for _, of := range []string{"metadata.annotations", "spec.template.metadata.annotations"} {
		for _, name := range meaningful {
			if at := c.machine.at(of); at != nil && at.fields[name] != nil {
				at.fields[name].refuse("it changes the machine: remove it, and write here what it does")
			}
		}
	}
	c.carry(c.machine, c.to, ofObject...)
	c.carry(c.domain, c.to, ofDomain...)
	c.running()
	c.hardware()
	c.processors()
	c.memory()
	c.clock()
	c.features()
	c.devices()
	c.readDisks()
	c.interfaces()
	c.bootOrder()
	c.result["unsupported"] = c.left()
}

// left is what no value has, of all manifests.
func (c *converter) left() []values {
	c.preference.skip(yielding...)
	all, _ := c.machine.unread()
	for _, o := range c.others {
		if !o.read {
			o.reason = "it is no part of the machine: apply it to the cluster"
			all = append(all, o)
			continue
		}
		o.skip(recorded...)
		o.skip("metadata")
		more, _ := o.unread()
		all = append(all, more...)
	}
	left := []values{}
	for _, n := range all {
		left = append(left, values{"path": n.path(), "reason": cmp.Or(n.reason, reason(n.path()))})
	}
	return left
}

// running is whether the machine runs: an apply starts one that should, and is off.
func (c *converter) running() {
	at := c.machine.at("spec.runStrategy")
	if at == nil {
		return
	}
	if c.to["running"] != nil {
		at.refuse("it excludes running")
	}
	at.one("Always", "Halted", "Manual", "RerunOnFailure", "Once")
	c.to["running"] = at.text != "Halted" && at.text != "Manual"
	switch at.text {
	case "Manual":
		at.leave("the machine is off until the attribute running says otherwise")
	case "RerunOnFailure", "Once":
		at.leave("an apply starts a machine that is off, also one whose guest has shut down")
	}
}

// bootOrder refuses a place that two devices have.
func (c *converter) bootOrder() {
	first := map[int64]*node{}
	for _, device := range append(c.domain.each("devices.disks"), c.domain.each("devices.interfaces")...) {
		order := device.at("bootOrder")
		switch n := order.number(); {
		case n == nil:
		case *n == 0:
			order.refuse("it counts from 1")
		case first[*n] != nil:
			order.refuse("it is that of %s, too", first[*n].path())
		default:
			first[*n] = device
		}
	}
}
