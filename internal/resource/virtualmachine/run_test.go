package virtualmachine

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/guestinit"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

func listOf(all ...string) attr.Value {
	var values []attr.Value
	for _, s := range all {
		values = append(values, types.StringValue(s))
	}
	return types.ListValueMust(types.StringType, values)
}

func mapOf(all map[string]string) attr.Value {
	values := map[string]attr.Value{}
	for name, s := range all {
		values[name] = types.StringValue(s)
	}
	return types.MapValueMust(types.StringType, values)
}

// filled is an object with those attributes; the others are null.
func filled(t *testing.T, of map[string]attr.Type, with map[string]attr.Value) types.Object {
	t.Helper()
	values := map[string]attr.Value{}
	for name, kind := range of {
		null, err := kind.ValueFromTerraform(t.Context(), nullOf(t, kind))
		if err != nil {
			t.Fatal(err)
		}
		values[name] = null
	}
	maps.Copy(values, with)
	return types.ObjectValueMust(of, values)
}

// mounted are mounts by the keys of their disks, and networked networks by the keys of their interfaces.
func mounted(t *testing.T, at map[string]string, readOnly bool) attr.Value {
	t.Helper()
	all := map[string]attr.Value{}
	for key, path := range at {
		all[key] = filled(t, mountTypes, map[string]attr.Value{"path": types.StringValue(path), "read_only": types.BoolValue(readOnly)})
	}
	return types.MapValueMust(types.ObjectType{AttrTypes: mountTypes}, all)
}

// formatted is a mount whose disk is formatted.
func formatted(t *testing.T, key string, readOnly bool) attr.Value {
	t.Helper()
	return types.MapValueMust(types.ObjectType{AttrTypes: mountTypes}, map[string]attr.Value{key: filled(t, mountTypes, map[string]attr.Value{
		"path": types.StringValue("/data"), "read_only": types.BoolValue(readOnly), "format": types.StringValue("ext4"),
	})})
}

func networked(t *testing.T, with map[string]attr.Value) attr.Value {
	t.Helper()
	return types.MapValueMust(types.ObjectType{AttrTypes: networkTypes}, map[string]attr.Value{"lan": filled(t, networkTypes, with)})
}

// runner is a machine with the disks root, data and more, and the interface lan, that runs this.
func runner(t *testing.T, run map[string]attr.Value) model {
	t.Helper()
	disks := map[string]attr.Value{}
	for _, key := range []string{"root", "data", "more"} {
		disks[key] = filled(t, diskTypes, nil)
	}
	disks["more"] = filled(t, diskTypes, map[string]attr.Value{"serial": types.StringValue("S1")})
	lan := filled(t, interfaceTypes, map[string]attr.Value{"mac": types.StringValue("52:54:00:AA:00:01")})
	return model{
		Name: types.StringValue("web"), Boot: filled(t, bootTypes, map[string]attr.Value{"kernel": types.StringValue("/k")}), Run: filled(t, runTypes, run),
		Disks:      types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, disks),
		Interfaces: types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, map[string]attr.Value{"lan": lan}),
	}
}

// nginx is the configuration of an image.
func nginx(t *testing.T) attr.Value {
	t.Helper()
	return filled(t, tfvalue.ImageConfigurationTypes, map[string]attr.Value{
		"architecture": types.StringValue("amd64"), "entrypoint": listOf("/entry.sh"), "command": listOf("nginx", "-g"), "user": types.StringValue("101"),
		"working_directory": types.StringValue("/srv"), "stop_signal": types.StringValue("SIGQUIT"), "environment": mapOf(map[string]string{"A": "image", "B": "image"}),
	})
}

func TestRun_ImageIsOverridden(t *testing.T) {
	for name, c := range map[string]struct {
		run  map[string]attr.Value
		want guestinit.Config
	}{
		"image alone": {nil, guestinit.Config{
			Arguments: []string{"/entry.sh", "nginx", "-g"}, Environment: map[string]string{"A": "image", "B": "image"}, User: "101", WorkingDirectory: "/srv", StopSignal: "SIGQUIT",
		}},
		"command": {map[string]attr.Value{"command": listOf("-v")}, guestinit.Config{
			Arguments: []string{"/entry.sh", "-v"}, Environment: map[string]string{"A": "image", "B": "image"}, User: "101", WorkingDirectory: "/srv", StopSignal: "SIGQUIT",
		}},
		"all": {map[string]attr.Value{
			"entrypoint": listOf("/bin/sh"), "environment": mapOf(map[string]string{"B": "own"}), "user": types.StringValue("0:0"),
			"working_directory": types.StringValue("/"), "stop_signal": types.StringValue("TERM"), "hostname": types.StringValue("www"), "root": types.StringValue("data"),
			"mounts":  mounted(t, map[string]string{"more": "/data", "root": "/data/root"}, true),
			"network": networked(t, map[string]attr.Value{"addresses": listOf("10.0.0.5/24"), "gateway": types.StringValue("10.0.0.1")}),
			"restart": types.StringValue("always"), "stop_timeout": types.Int64Value(30),
		}, guestinit.Config{
			Arguments: []string{"/bin/sh"}, Environment: map[string]string{"A": "image", "B": "own"}, User: "0:0", WorkingDirectory: "/", StopSignal: "TERM",
			Hostname: "www", Root: "data", Mounts: []guestinit.Mount{{Disk: "S1", Path: "/data", ReadOnly: true}, {Disk: "root", Path: "/data/root", ReadOnly: true}},
			Interfaces: []guestinit.Interface{{MAC: "52:54:00:aa:00:01", Addresses: []string{"10.0.0.5/24"}, Gateway: "10.0.0.1"}}, Restart: "always", StopTimeout: 30,
		}},
	} {
		run := map[string]attr.Value{"image": nginx(t)}
		maps.Copy(run, c.run)
		m := runner(t, run)
		c.want.Version = guestinit.Version
		if name != "all" {
			c.want.Root, c.want.Hostname = "root", "web"
		}
		var diags diag.Diagnostics
		checkRun(t.Context(), m, &diags)
		if diff := cmp.Diff(c.want, m.runConfig()); diff != "" || diags.HasError() {
			t.Errorf("%s: %v (-want +got):\n%s", name, diags, diff)
		}
	}
}

// Each attribute is part of what the domain has, and any difference of that is pending.
func TestRun_AllTakesEffectAtNextStart(t *testing.T) {
	base := map[string]attr.Value{
		"image": nginx(t), "mounts": mounted(t, map[string]string{"data": "/data"}, false), "network": networked(t, map[string]attr.Value{"addresses": listOf("10.0.0.5/24")}),
	}
	text := func(m model) string {
		text, err := m.runConfig().Encode()
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := text(runner(t, base))
	address := func(name string, v attr.Value) attr.Value {
		return networked(t, map[string]attr.Value{"addresses": listOf("10.0.0.5/24"), name: v})
	}
	for _, change := range []map[string]attr.Value{
		{"image": types.ObjectNull(tfvalue.ImageConfigurationTypes), "entrypoint": listOf("/a")},
		{"root": types.StringValue("more")},
		{"entrypoint": listOf("/a")},
		{"command": listOf("a")},
		{"environment": mapOf(map[string]string{"C": "c"})},
		{"environment_from": listOf("more")},
		{"user": types.StringValue("7")},
		{"working_directory": types.StringValue("/w")},
		{"stop_signal": types.StringValue("INT")},
		{"stop_timeout": types.Int64Value(7)},
		{"hostname": types.StringValue("h")},
		{"mounts": mounted(t, map[string]string{"data": "/other"}, false)},
		{"mounts": mounted(t, map[string]string{"data": "/data"}, true)},
		{"mounts": formatted(t, "data", false)},
		{"network": networked(t, map[string]attr.Value{"addresses": listOf("10.0.0.6/24")})},
		{"network": address("gateway", types.StringValue("10.0.0.1"))},
		{"network": address("nameservers", listOf("10.0.0.2"))},
		{"network": address("search", listOf("example.org"))},
		{"restart": types.StringValue("always")},
		{"timestamps": types.BoolValue(true)},
		{"tty": types.BoolValue(true)},
	} {
		run := maps.Clone(base)
		maps.Copy(run, change)
		after := text(runner(t, run))
		if after == before {
			t.Errorf("%v changes nothing", change)
		}
		of := func(run string) domainxml.Machine {
			return domainxml.Machine{DomainType: "qemu", VCPUs: 1, Memory: 1024, Run: run}
		}
		xml, err := domainxml.Build(of(before))
		if err != nil {
			t.Fatal(err)
		}
		live, err := domainxml.Read(xml)
		if err != nil {
			t.Fatal(err)
		}
		if pending, err := live.Pending(of(after)); err != nil || strings.Join(pending, " ") != "run" {
			t.Errorf("%v: pending are %v, %v", change, pending, err)
		}
	}
}

// disksWith is the disk root with those attributes.
func disksWith(t *testing.T, with map[string]attr.Value) types.Map {
	t.Helper()
	return types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, map[string]attr.Value{"root": filled(t, diskTypes, with)})
}

// A program that may take longer to end than force_stop waits is warned of.
func TestRun_ForceStopIsShorter(t *testing.T) {
	for _, c := range []struct {
		force   bool
		timeout int64
		warns   bool
	}{{true, 100, true}, {true, 45, false}, {false, 100, false}} {
		m := runner(t, map[string]attr.Value{"image": nginx(t), "stop_timeout": types.Int64Value(c.timeout)})
		m.ForceStop = types.BoolValue(c.force)
		var diags diag.Diagnostics
		if checkRun(t.Context(), m, &diags); diags.HasError() || (diags.WarningsCount() == 1) != c.warns {
			t.Errorf("%+v: %v", c, diags)
		}
	}
}

func TestRun_Refused(t *testing.T) {
	image := func(change map[string]attr.Value) map[string]attr.Value {
		all := map[string]attr.Value{"image": nginx(t)}
		maps.Copy(all, change)
		return all
	}
	for want, change := range map[string]func(m *model){
		"needs a kernel": func(m *model) { m.Boot = types.ObjectNull(bootTypes) },
		`has no disk "other"`: func(m *model) {
			m.Run = filled(t, runTypes, image(map[string]attr.Value{"root": types.StringValue("other")}))
		},
		`"root" is on sata`: func(m *model) {
			m.Disks = disksWith(t, map[string]attr.Value{"bus": types.StringValue("sata")})
		},
		`Remove read_only`: func(m *model) {
			m.Disks = disksWith(t, map[string]attr.Value{"read_only": types.BoolValue(true)})
		},
		`has no disk "nfs"`: func(m *model) {
			m.Run = filled(t, runTypes, image(map[string]attr.Value{"mounts": mounted(t, map[string]string{"nfs": "/d"}, false)}))
		},
		"Remove format or read_only": func(m *model) {
			m.Run = filled(t, runTypes, image(map[string]attr.Value{"mounts": formatted(t, "data", true)}))
		},
		"access mode write-shared": func(m *model) {
			m.Run = filled(t, runTypes, image(map[string]attr.Value{"mounts": formatted(t, "root", false)}))
			m.Disks = disksWith(t, map[string]attr.Value{"volume": tfvalue.VolumeObject(volume.Volume{Images: []volume.Image{{
				Type: "block", Name: "/dev/a", AccessMode: volume.WriteShared,
			}}}, tfvalue.Unknowns{})})
		},
		`has no disk "secret"`: func(m *model) {
			m.Run = filled(t, runTypes, image(map[string]attr.Value{"environment_from": listOf("secret")}))
		},
		"both have \"root\"":          func(m *model) { m.Disks = withSerial(t, m.Disks, "data", "root") },
		"has at most 20 bytes":        func(m *model) { m.Disks = withSerial(t, m.Disks, "data", strings.Repeat("s", 21)) },
		"the image has no entrypoint": func(m *model) { m.Run = filled(t, runTypes, nil) },
		"must not be negative": func(m *model) {
			m.Run = filled(t, runTypes, image(map[string]attr.Value{"stop_timeout": types.Int64Value(-1)}))
		},
		"by its MAC address. Set it": func(m *model) {
			m.Interfaces = types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, map[string]attr.Value{"lan": filled(t, interfaceTypes, nil)})
		},
		`has no interface "lan"`: func(m *model) { m.Interfaces = types.MapNull(types.ObjectType{AttrTypes: interfaceTypes}) },
		"has the architecture aarch64": func(m *model) {
			m.Machine = filled(t, machineTypes, map[string]attr.Value{"arch": types.StringValue("aarch64")})
		},
	} {
		m := runner(t, image(map[string]attr.Value{
			"mounts": mounted(t, map[string]string{"data": "/d"}, false), "network": networked(t, map[string]attr.Value{"addresses": listOf("10.0.0.5/24")}),
		}))
		change(&m)
		var diags diag.Diagnostics
		checkRun(t.Context(), m, &diags)
		if text, _ := json.Marshal(diags.Errors()); !diags.HasError() || !strings.Contains(diags.Errors()[0].Detail(), want) {
			t.Errorf("%s: %s", want, text)
		}
	}
}

func withSerial(t *testing.T, disks types.Map, key, serial string) types.Map {
	t.Helper()
	all := maps.Clone(disks.Elements())
	all[key] = filled(t, diskTypes, map[string]attr.Value{"serial": types.StringValue(serial)})
	return types.MapValueMust(types.ObjectType{AttrTypes: diskTypes}, all)
}

// What was changed outside of Terraform is shown, and an import has all of it.
func TestRun_ReadsWhatTheDomainHas(t *testing.T) {
	run := map[string]attr.Value{
		"entrypoint": listOf("/a", "b"), "environment": mapOf(map[string]string{"A": "a"}), "user": types.StringValue("7"), "root": types.StringValue("data"),
		"environment_from": listOf("more"),
		"mounts":           mounted(t, map[string]string{"more": "/more", "root": "/root"}, false),
		"network":          networked(t, map[string]attr.Value{"addresses": listOf("10.0.0.5/24"), "nameservers": listOf("10.0.0.2"), "search": listOf("a.org")}),
		"restart":          types.StringValue("always"), "hostname": types.StringValue("www"), "stop_timeout": types.Int64Value(5),
	}
	m := runner(t, run)
	readsBack(t, m)
	run["mounts"] = formatted(t, "more", false)
	readsBack(t, runner(t, run))
	kept := runner(t, map[string]attr.Value{"image": nginx(t)})
	text, err := kept.runConfig().Encode()
	if err != nil {
		t.Fatal(err)
	}
	before := kept.Run
	if readRun(&kept, domainxml.Machine{Run: string(text)}); !kept.Run.Equal(before) {
		t.Errorf("it was not changed, and is %s", kept.Run)
	}
	if readRun(&kept, domainxml.Machine{Run: "else"}); kept.Run.Equal(before) {
		t.Error("it was changed, and that is not seen")
	}
	if readRun(&kept, domainxml.Machine{}); !kept.Run.IsNull() {
		t.Errorf("it was removed, and is %s", kept.Run)
	}
}

func readsBack(t *testing.T, m model) {
	t.Helper()
	text, err := m.runConfig().Encode()
	if err != nil {
		t.Fatal(err)
	}
	imported := runner(t, nil)
	imported.Run = types.ObjectNull(runTypes)
	readRun(&imported, domainxml.Machine{Run: string(text)})
	if diff := cmp.Diff(m.Run, imported.Run); diff != "" {
		t.Errorf("-configured +imported:\n%s", diff)
	}
}

func nullOf(t *testing.T, kind attr.Type) tftypes.Value {
	t.Helper()
	return tftypes.NewValue(kind.TerraformType(t.Context()), nil)
}

// The host's choice counts like a configured architecture. What is there already is managed further.
func TestRun_ExistingMachineGetsAnotherArchitecture(t *testing.T) {
	of := func(architecture string) model {
		m := runner(t, map[string]attr.Value{"image": filled(t, tfvalue.ImageConfigurationTypes, map[string]attr.Value{
			"architecture": tfvalue.OrNull(architecture), "entrypoint": listOf("/x"),
		})})
		m.UUID = types.StringValue("5e0")
		return m
	}
	for was, errors := range map[string]int{"amd64": 1, "arm64": 0} {
		var diags diag.Diagnostics
		of("arm64").withOtherImage(of(was)).checkImageFor("x86_64", &diags)
		if len(diags.Errors()) != errors || len(diags) != 1 {
			t.Errorf("one of %s gets an image for arm64: %v", was, diags)
		}
	}
}

func TestRun_ImageForAnotherArchitecture(t *testing.T) {
	for name, c := range map[string]struct {
		image, arch, uuid string
		errors, warnings  int
	}{
		"its own":                         {image: "amd64", arch: "x86_64"},
		"a variant of its own":            {image: "amd64/v3", arch: "x86_64"},
		"an unknown one":                  {image: "arm64", arch: "riscv64"},
		"one that is not known yet":       {arch: "x86_64"},
		"another one":                     {image: "arm64", arch: "x86_64", errors: 1},
		"another one, of an old machine":  {image: "arm64", arch: "x86_64", uuid: "5e0", warnings: 1},
		"a smaller one of the same maker": {image: "arm/v7", arch: "aarch64", errors: 1},
	} {
		image := filled(t, tfvalue.ImageConfigurationTypes, map[string]attr.Value{"architecture": tfvalue.OrNull(c.image), "entrypoint": listOf("/x")})
		m := runner(t, map[string]attr.Value{"image": image})
		m.UUID = tfvalue.OrNull(c.uuid)
		var diags diag.Diagnostics
		m.checkImageFor(c.arch, &diags)
		if len(diags.Errors()) != c.errors || len(diags.Warnings()) != c.warnings {
			t.Errorf("%s: %v", name, diags)
		}
		m.Machine = filled(t, machineTypes, map[string]attr.Value{"arch": types.StringValue(c.arch)})
		before := len(diags)
		if checkRun(t.Context(), m, &diags); len(diags) != before {
			t.Errorf("%s: a configured one is another: %v", name, diags)
		}
		if len(diags) == 1 && !strings.Contains(diags[0].Detail(), "or set machine.arch to that of the image") {
			t.Errorf("%s: %v", name, diags)
		}
	}
}
