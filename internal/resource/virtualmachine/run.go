package virtualmachine

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

var runGroup = attributeGroup{attributes: runAttributes, intent: runIntent, read: readRun, check: checkRun}

var runPath = path.Root("run")

const rootKey = "root"

// root is the key of the disk with the root file system.
func (run fields) root() string { return cmp.Or(run.text("root"), rootKey) }

// diskKeys are the keys of the disks that the guest finds by their serial numbers.
func (run fields) diskKeys() []string {
	return slices.Concat([]string{run.root()}, keysOf(run["mounts"]), textsOf(run["environment_from"]))
}

// elementsOf are those of a map, and keysOf their sorted keys.
func elementsOf(v attr.Value) map[string]attr.Value {
	m, _ := v.(types.Map)
	return m.Elements()
}

func keysOf(v attr.Value) []string { return slices.Sorted(maps.Keys(elementsOf(v))) }

// serialOf is the serial number of a disk: the configured one, or its key.
func (m model) serialOf(key string) string {
	return cmp.Or(fieldsOf(m.Disks.Elements()[key]).text("serial"), key)
}

// runIntent comes after disks and interfaces.
func runIntent(_ context.Context, m model, want *domainxml.Machine, diags *diag.Diagnostics) {
	if m.Run.IsNull() {
		return
	}
	for _, key := range fieldsOf(m.Run).diskKeys() {
		if d, ok := want.Disks[key]; ok {
			d.DefaultSerial = key
			want.Disks[key] = d
		}
	}
	text, err := m.runConfig().Encode()
	if err != nil {
		addRunError(diags, err)
	}
	want.Run = string(text)
}

func addRunError(diags *diag.Diagnostics, err error) {
	diags.AddAttributeError(runPath, "Invalid run", err.Error())
}

// runConfig is what the init is told.
func (m model) runConfig() guestinit.Config {
	run := fieldsOf(m.Run)
	image := fieldsOf(run["image"])
	text := func(name string) string { return cmp.Or(run.text(name), image.text(name)) }
	c := guestinit.Config{
		Version: guestinit.Version, Root: m.serialOf(run.root()), Environment: map[string]string{}, User: text("user"),
		WorkingDirectory: text("working_directory"), StopSignal: text("stop_signal"), StopTimeout: int(run.number("stop_timeout")),
		Hostname: cmp.Or(run.text("hostname"), hostnameOf(m.Name.ValueString())), Restart: run.text("restart"),
		TTY: run.is("tty"), Timestamps: run.is("timestamps"),
	}
	entrypoint, command := textsOf(image["entrypoint"]), textsOf(image["command"])
	if isSet(run["entrypoint"]) {
		entrypoint, command = textsOf(run["entrypoint"]), nil
	}
	if isSet(run["command"]) {
		command = textsOf(run["command"])
	}
	c.Arguments = slices.Concat(entrypoint, command)
	for _, variables := range []attr.Value{image["environment"], run["environment"]} {
		for name, value := range elementsOf(variables) {
			c.Environment[name] = value.(types.String).ValueString()
		}
	}
	for _, key := range textsOf(run["environment_from"]) {
		c.EnvironmentDisks = append(c.EnvironmentDisks, m.serialOf(key))
	}
	for key, value := range elementsOf(run["mounts"]) {
		of := fieldsOf(value)
		c.Mounts = append(c.Mounts,
			guestinit.Mount{Disk: m.serialOf(key), Path: of.text("path"), ReadOnly: of.is("read_only"), Format: of.text("format")})
	}
	slices.SortFunc(c.Mounts, func(a, b guestinit.Mount) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Disk, b.Disk))
	}) // the outer ones first
	for _, key := range keysOf(run["network"]) {
		of := fieldsOf(elementsOf(run["network"])[key])
		c.Interfaces = append(c.Interfaces, guestinit.Interface{
			MAC:       strings.ToLower(fieldsOf(m.Interfaces.Elements()[key]).text("mac")),
			Addresses: textsOf(of["addresses"]), Gateway: of.text("gateway"), Nameservers: textsOf(of["nameservers"]),
			Search: textsOf(of["search"]),
		})
	}
	return c
}

var hostnames = regexp.MustCompile(`^[A-Za-z0-9.-]{1,64}$`)

// hostnameOf is a machine's name, if it can be a host name.
func hostnameOf(name string) string {
	if hostnames.MatchString(name) {
		return name
	}
	return ""
}

func textsOf(v attr.Value) (all []string) {
	list, _ := v.(types.List)
	for _, element := range list.Elements() {
		all = append(all, element.(types.String).ValueString())
	}
	return all
}

// forceTimeout is the longest stop_timeout, in seconds, with which a machine is off before force_stop forces it off.
const forceTimeout = 50

// checkRun refuses what can't be run, as far as it is known.
func checkRun(ctx context.Context, m model, diags *diag.Diagnostics) {
	if !isSet(m.Run) {
		return
	}
	run := fieldsOf(m.Run)
	if m.Boot.IsNull() {
		diags.AddAttributeError(runPath, "No kernel",
			"What runs needs a kernel, and an init that starts it. Set boot to that of a virtclaim_kernel.")
	}
	if !m.Disks.IsUnknown() && !run["root"].IsUnknown() {
		m.checkRunDisks(run, diags)
	}
	if !m.Interfaces.IsUnknown() {
		m.checkRunNetwork(run, diags)
	}
	if timeout := run.number("stop_timeout"); m.ForceStop.ValueBool() && timeout > forceTimeout {
		diags.AddAttributeWarning(runPath.AtName("stop_timeout"), "force_stop is shorter than stop_timeout",
			fmt.Sprintf("force_stop forces the machine off after a minute, and stop_timeout gives its program %d seconds to shut down: "+
				"unwritten data would be lost. Remove force_stop, or lower stop_timeout.", timeout))
	}
	if m.runsOnce() && (m.Autostart.ValueBool() || run.text("restart") == guestinit.RestartAlways) {
		diags.AddAttributeError(runPath.AtName("once"), "A job that would run again",
			"A program that runs once ends for good: the host would start it again (autostart), or its machine (restart = \"always\"). "+
				"Remove these, or once.")
	}
	if run.is("tty") && run.is("timestamps") {
		diags.AddAttributeError(runPath.AtName("timestamps"), "No time in front of a terminal's lines",
			"With tty, the program writes to the console itself. Remove tty or timestamps.")
	}
	m.checkImageFor(fieldsOf(m.Machine).text("arch"), diags)
	raw, err := m.Run.ToTerraformValue(ctx)
	if err != nil || !raw.IsFullyKnown() || m.Name.IsUnknown() || m.Disks.IsUnknown() || m.Interfaces.IsUnknown() || diags.HasError() {
		return
	}
	if _, err := m.runConfig().Encode(); err != nil {
		addRunError(diags, err)
	}
}

// checkImageFor refuses to create a machine of an architecture, configured or the host's choice, that its image is not for. One that is
// there was made like that: refusing it would be in the way of all plans.
func (m model) checkImageFor(arch string, diags *diag.Diagnostics) {
	image := m.imageArchitecture()
	of, _, _ := strings.Cut(image, "/") // without the variant
	is, known := map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[arch]
	if !known || image == "" || of == is {
		return
	}
	add := diags.AddAttributeError
	if isSet(m.UUID) {
		add = diags.AddAttributeWarning
	}
	add(runPath.AtName("image"), "Image for another architecture", fmt.Sprintf("The container image is for %.100s, and the machine has "+
		"the architecture %s. Use an image for %s, or set machine.arch to that of the image.", image, arch, is))
}

func (m model) imageArchitecture() string {
	return fieldsOf(fieldsOf(m.Run)["image"]).text("architecture")
}

// withOtherImage is the machine to check: one that gets an image of another architecture counts as new.
func (m model) withOtherImage(was model) model {
	if m.imageArchitecture() != was.imageArchitecture() {
		m.UUID = types.StringNull()
	}
	return m
}

func (m model) checkRunNetwork(run fields, diags *diag.Diagnostics) {
	for _, key := range keysOf(run["network"]) {
		i, ok := m.Interfaces.Elements()[key]
		if !ok {
			diags.AddAttributeError(runPath.AtName("network").AtMapKey(key), "No such interface",
				fmt.Sprintf("The machine has no interface %q.", key))
		} else if isSet(i) && fieldsOf(i).text("mac") == "" {
			diags.AddAttributeError(interfacePath(key).AtName("mac"), "No MAC address",
				fmt.Sprintf("The guest finds the interface %q of run.network by its MAC address. Set it.", key))
		}
	}
}

// maxSerial is the number of bytes of a serial number on virtio.
const maxSerial = 20

func (m model) checkRunDisks(run fields, diags *diag.Diagnostics) {
	serials := map[string]string{}
	for _, key := range run.diskKeys() {
		at := runPath.AtName("mounts").AtMapKey(key)
		switch {
		case key == run.root():
			at = runPath.AtName("root")
		case slices.Contains(textsOf(run["environment_from"]), key):
			at = runPath.AtName("environment_from")
		}
		if _, ok := m.Disks.Elements()[key]; !ok {
			diags.AddAttributeError(at, "No such disk", fmt.Sprintf("The machine has no disk %q.", key))
			continue
		}
		disk := fieldsOf(m.Disks.Elements()[key])
		if bus := disk.text("bus"); !slices.Contains([]string{"", "virtio", "scsi"}, bus) {
			diags.AddAttributeError(diskPath(key).AtName("bus"), "No driver for the bus",
				fmt.Sprintf("The guest has drivers for virtio and scsi only, and the disk %q is on %s.", key, bus))
		}
		if key == run.root() && disk.is("read_only") {
			diags.AddAttributeError(diskPath(key).AtName("read_only"), "The root disk is read-only",
				fmt.Sprintf("The program of run has its files on the disk %q. Remove read_only.", key))
		}
		checkFormat(key, fieldsOf(elementsOf(run["mounts"])[key]), disk, diags)
		serial := m.serialOf(key)
		if len(serial) > maxSerial {
			diags.AddAttributeError(diskPath(key).AtName("serial"), "No serial number", fmt.Sprintf("The guest finds the disk %q by its "+
				"serial number, which is its key unless one is configured, and has at most %d bytes. Set serial, or a shorter key.", key,
				maxSerial))
		}
		if other, taken := serials[serial]; taken {
			diags.AddAttributeError(at, "Two disks with one serial number",
				fmt.Sprintf("The guest finds the disks %q and %q by their serial numbers, and both have %q.", other, key, serial))
		}
		serials[serial] = key
	}
}

// checkFormat refuses to format a disk that can't be written to, and one that other machines might format at the same time.
func checkFormat(key string, mount, disk fields, diags *diag.Diagnostics) {
	if mount.text("format") == "" {
		return
	}
	at := runPath.AtName("mounts").AtMapKey(key).AtName("format")
	if mount.is("read_only") || disk.is("read_only") {
		diags.AddAttributeError(at, "The disk is read-only",
			fmt.Sprintf("The guest can't format the disk %q, because it is read-only. Remove format or read_only.", key))
	}
	object, _ := disk["volume"].(types.Object)
	v, known, _ := tfvalue.VolumeFrom(object) // checkDisks reports its errors
	if !known || len(v.Images) == 0 || slices.Contains([]volume.AccessMode{"", volume.WriteExclusive}, v.Images[0].AccessMode) {
		return
	}
	diags.AddAttributeError(at, "The volume is not the machine's own", fmt.Sprintf("The volume of the disk %q has the access mode %s: "+
		"other machines might use it while it is formatted. Remove format, or bind the volume %s.", key, v.Images[0].AccessMode,
		volume.WriteExclusive))
}

// readRun keeps the configured attributes as long as they result in what the domain has. It comes after disks and interfaces.
func readRun(m *model, is domainxml.Machine) {
	readExitCode(m, is)
	if is.Run == "" {
		m.Run = types.ObjectNull(runTypes)
		return
	}
	if isSet(m.Run) {
		text, err := m.runConfig().Encode()
		if err == nil && string(text) == is.Run {
			return
		}
	}
	c, err := guestinit.Decode([]byte(is.Run))
	if err != nil {
		c = guestinit.Config{} // another one than is configured
	}
	m.Run = m.runObject(c)
}

// runObject are the attributes of what was configured outside of Terraform, or imported.
func (m model) runObject(c guestinit.Config) types.Object {
	list := func(all []string) attr.Value {
		if len(all) == 0 {
			return types.ListNull(types.StringType)
		}
		var values []attr.Value
		for _, s := range all {
			values = append(values, types.StringValue(s))
		}
		return types.ListValueMust(types.StringType, values)
	}
	key := func(serial string) string {
		for key := range m.Disks.Elements() {
			if m.serialOf(key) == serial {
				return key
			}
		}
		return serial
	}
	var from []string
	for _, serial := range c.EnvironmentDisks {
		from = append(from, key(serial))
	}
	environment, mounts, networks := map[string]attr.Value{}, map[string]attr.Value{}, map[string]attr.Value{}
	for name, value := range c.Environment {
		environment[name] = types.StringValue(value)
	}
	for _, of := range c.Mounts {
		mounts[key(of.Disk)] = types.ObjectValueMust(mountTypes, map[string]attr.Value{
			"path": types.StringValue(of.Path), "read_only": types.BoolValue(of.ReadOnly), "format": tfvalue.OrNull(of.Format),
		})
	}
	for _, i := range c.Interfaces {
		name := i.MAC
		for key, element := range m.Interfaces.Elements() {
			if strings.EqualFold(fieldsOf(element).text("mac"), i.MAC) {
				name = key
			}
		}
		networks[name] = types.ObjectValueMust(networkTypes, map[string]attr.Value{
			"addresses": list(i.Addresses), "gateway": tfvalue.OrNull(i.Gateway), "nameservers": list(i.Nameservers),
			"search": list(i.Search),
		})
	}
	timeout := types.Int64Null()
	if c.StopTimeout != 0 {
		timeout = types.Int64Value(int64(c.StopTimeout))
	}
	return types.ObjectValueMust(runTypes, map[string]attr.Value{
		"image": types.ObjectNull(tfvalue.ImageConfigurationTypes), "root": tfvalue.OrNull(key(c.Root)), "entrypoint": list(c.Arguments),
		"command":     list(nil),
		"environment": types.MapValueMust(types.StringType, environment), "environment_from": list(from), "user": tfvalue.OrNull(c.User),
		"working_directory": tfvalue.OrNull(c.WorkingDirectory),
		"stop_signal":       tfvalue.OrNull(c.StopSignal), "stop_timeout": timeout, "hostname": tfvalue.OrNull(c.Hostname),
		"restart": tfvalue.OrNull(c.Restart), "tty": orNull(c.TTY), "timestamps": orNull(c.Timestamps),
		"once": orNull(m.runsOnce()), // no host knows of it
		"mounts": types.MapValueMust(types.ObjectType{AttrTypes: mountTypes},
			mounts), "network": types.MapValueMust(types.ObjectType{AttrTypes: networkTypes}, networks),
	})
}

func readExitCode(m *model, is domainxml.Machine) {
	m.ExitCode = types.Int64Null()
	if is.ExitCode != nil {
		m.ExitCode = types.Int64Value(int64(*is.ExitCode))
	}
}

// runsOnce reports whether the program is a job, which is not started again when it has ended.
func (m model) runsOnce() bool { return fieldsOf(m.Run).is("once") }

// orNull leaves out what is not the case.
func orNull(is bool) types.Bool {
	if !is {
		return types.BoolNull()
	}
	return types.BoolValue(true)
}

// warnOfProgram warns of a program that could not be started, or has failed.
func (m model) warnOfProgram(is domainxml.Machine, diags *diag.Diagnostics) {
	if m.Running.ValueBool() && is.IsDone() && *is.ExitCode != 0 {
		again := "An apply starts the machine again."
		if m.runsOnce() {
			again = "To run it again, replace the machine (-replace)."
		}
		diags.AddAttributeWarning(runPath, fmt.Sprintf("The program of machine %s has failed", m.Name.ValueString()),
			fmt.Sprintf("Machine %s on host %s is off: its program has ended with the exit code %d%s. %s", m.Name.ValueString(),
				m.Host.ValueString(), *is.ExitCode, machine.LastWords(is), again))
	}
	if is.RunError != "" {
		diags.AddAttributeWarning(runPath, fmt.Sprintf("The program of machine %s was not started", m.Name.ValueString()),
			fmt.Sprintf("Machine %s on host %s went off again, because: %s", m.Name.ValueString(), m.Host.ValueString(), is.RunError))
	}
}
