package virtualmachine

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// waitAt configures wait_for with addresses at those interfaces.
func (m *model) waitAt(t *testing.T, addresses types.Set) {
	t.Helper()
	m.WaitFor = types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
		"addresses": addresses, "agent": types.BoolNull(), "cloud_init": types.BoolNull(), "timeout": types.StringNull(),
	})
}

func keySet(keys ...string) types.Set {
	var values []attr.Value
	for _, key := range keys {
		values = append(values, types.StringValue(key))
	}
	return types.SetValueMust(types.StringType, values)
}

func TestWaitFor_Impossible(t *testing.T) {
	const notCome, noAgent = "What was waited for has not come", "The agent was not waited for"
	for name, c := range map[string]struct {
		stored, runs bool // whether the definition and the running machine have the agent's port
		agent        bool
		addresses    []string
		want         []string
	}{
		"the agent": {stored: true, runs: true, agent: true, want: []string{notCome}},
		"an agent whose port comes with the next start": {stored: true, agent: true, want: []string{noAgent}},
		"an address":                                     {addresses: []string{"lan"}, want: []string{notCome}},
		"an address that the agent might tell":           {stored: true, addresses: []string{"lan"}, want: []string{noAgent, notCome}},
		"an address that only the agent tells":           {stored: true, runs: true, addresses: []string{"own"}, want: []string{notCome}},
		"the same before the port is there":              {stored: true, addresses: []string{"own"}, want: []string{noAgent}},
		"an address where the link is down":              {addresses: []string{"down"}},
		"an address where the link is down, and no port": {stored: true, addresses: []string{"down"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", Interfaces: map[string]domainxml.Interface{
				"lan":  {Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:01"},
				"own":  {User: true, Model: "virtio", MAC: "52:54:00:00:00:02"},
				"down": {Bridge: "br0", Model: "virtio", MAC: "52:54:00:00:00:03", Down: true},
			}}
			build := func(port bool) string {
				is.GuestAgent = port
				text, err := domainxml.Build(is)
				if err != nil {
					t.Fatal(err)
				}
				return text
			}
			h := &unchanging{stored: build(c.stored), live: build(c.runs), state: host.State{Active: true, Responsive: true}}
			interfaces := map[string]attr.Value{}
			for key, i := range is.Interfaces {
				interfaces[key] = interfaceObject(i)
			}
			m := model{Interfaces: types.MapValueMust(types.ObjectType{AttrTypes: interfaceTypes}, interfaces)}
			m.Running, m.WaitFor = types.BoolValue(true), types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
				"addresses": keySet(c.addresses...), "agent": types.BoolValue(c.agent), "cloud_init": types.BoolNull(),
				"timeout": types.StringNull(),
			})
			var diags diag.Diagnostics
			m.await(t.Context(), h.manager(), &diags)
			var got []string
			for _, d := range diags {
				got = append(got, d.Summary())
			}
			slices.Sort(got)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("it warns of (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWaitFor_AddressWithoutSource(t *testing.T) {
	for agent, refused := range map[types.Bool]bool{types.BoolNull(): true, types.BoolValue(true): false, types.BoolUnknown(): false} {
		m := with(map[string]attr.Value{"network": types.StringNull(), "user": types.BoolValue(true)})
		m.GuestAgent = agent
		m.waitAt(t, keySet("a", "b"))
		var diags diag.Diagnostics
		if checkWaitFor(t.Context(), m, &diags); diags.HasError() != refused {
			t.Errorf("guest_agent %s: %v", agent, diags)
		}
	}
}

func (m *model) waitForCloudInit(t *testing.T) {
	t.Helper()
	m.WaitFor = types.ObjectValueMust(waitForTypes(t), map[string]attr.Value{
		"addresses": types.SetNull(types.StringType), "agent": types.BoolNull(), "cloud_init": types.BoolValue(true), "timeout": types.StringNull(),
	})
}

func TestWaitFor_CloudInit(t *testing.T) {
	const info = `{"supported_commands": [{"name": "guest-file-open", "enabled": true}, {"name": "guest-file-read", "enabled": true},
		{"name": "guest-file-close", "enabled": true}]}`
	result := func(text string) map[string]string {
		content, err := json.Marshal(map[string][]byte{"buf-b64": []byte(text)})
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"guest-info": info, "guest-file-open": "1", "guest-file-read": string(content)}
	}
	long, err := json.Marshal(strings.Repeat("\x1b[2J\n", 100))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		port  bool
		state string
		agent map[string]string
		want  []string // the summary of the warning, and parts of its text; nil is none
	}{
		"it is through":          {port: true, state: "connected", agent: result(`{"v1": {"errors": []}}`)},
		"with an error":          {port: true, state: "connected", agent: result(`{"v1": {"errors": ["a", "b"]}}`), want: []string{"cloud-init has failed", `first of 2 errors of cloud-init is "a"`}},
		"with a long one":        {port: true, state: "connected", agent: result(`{"v1": {"errors": [` + string(long) + `]}}`), want: []string{"cloud-init has failed", `"\x1b[2J\n\x1b[2J`}},
		"it is not through":      {port: true, state: "connected", agent: map[string]string{"guest-info": info}, want: []string{"What was waited for has not come", "no end of cloud-init", "if the image has it", `"no guest-file-open"`}},
		"the agent is not there": {port: true, state: "disconnected", want: []string{"What was waited for has not come", "no agent"}},
		"the agent refuses":      {port: true, state: "connected", agent: map[string]string{"guest-info": `{}`}, want: []string{"cloud-init was not waited for", "--allow-rpcs", "BLOCK_RPCS", "wait for addresses"}},
		"its port comes later":   {want: []string{"The agent was not waited for"}},
	} {
		t.Run(name, func(t *testing.T) {
			is := domainxml.Machine{Name: "web", VCPUs: 1, Memory: 65536, DomainType: "qemu", GuestAgent: true}
			stored, err := domainxml.Build(is)
			if err != nil {
				t.Fatal(err)
			}
			is.GuestAgent = c.port
			live, err := domainxml.Build(is)
			if err != nil {
				t.Fatal(err)
			}
			live = strings.Replace(live, `name="org.qemu.guest_agent.0"`, `name="org.qemu.guest_agent.0" state="`+c.state+`"`, 1)
			h := &unchanging{stored: stored, live: live, state: host.State{Active: true, Responsive: true}, agent: c.agent}
			m := model{Running: types.BoolValue(true), Name: types.StringValue("web"), Host: types.StringValue("host-a")}
			m.waitForCloudInit(t)
			var diags diag.Diagnostics
			m.await(t.Context(), h.manager(), &diags)
			if len(diags) != min(len(c.want), 1) {
				t.Fatal(diags)
			}
			for n, part := range c.want {
				if text := diags[0].Detail(); n > 0 && !strings.Contains(text, part) || n == 0 && diags[0].Summary() != part || len(text) > 300 {
					t.Errorf("it warns of %s (%d), without %s", text, len(text), part)
				}
			}
		})
	}
}

func TestWaitFor_CloudInitWithoutAgent(t *testing.T) {
	for agent, refused := range map[types.Bool]bool{types.BoolNull(): true, types.BoolValue(true): false, types.BoolUnknown(): false} {
		m := model{GuestAgent: agent}
		m.waitForCloudInit(t)
		var diags diag.Diagnostics
		if checkWaitFor(t.Context(), m, &diags); diags.HasError() != refused {
			t.Errorf("guest_agent %s: %v", agent, diags)
		}
	}
}
