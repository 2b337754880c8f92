package virtualmachine

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

var clockGroup = attributeGroup{attributes: clockAttributes, intent: clockIntent, read: readClock, check: checkClock}

type clockModel struct {
	Offset   types.String `tfsdk:"offset"`
	TimeZone types.String `tfsdk:"timezone"`
	Timers   types.Map    `tfsdk:"timers"`
}

type timerModel struct {
	Present    types.Bool   `tfsdk:"present"`
	TickPolicy types.String `tfsdk:"tickpolicy"`
}

var (
	clockTypes = attributesOf(clockAttributes()["clock"].GetType())
	timerTypes = attributesOf(clockTypes["timers"])
	timerNames = []string{"rtc", "pit", "hpet", "kvmclock", "hypervclock", "tsc", "armvtimer", "platform"}
)

// timeZone matches the names of the database, and no other path: QEMU opens the file of that name below the host's.
var timeZone = regexp.MustCompile(`^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$`)

func clockAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{"clock": schema.SingleNestedAttribute{
		Optional: true,
		MarkdownDescription: "The clock that the guest finds when it starts, and its timers. UTC without it. Changes take effect at the " +
			"next start.",
		Attributes: map[string]schema.Attribute{
			"offset": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("utc"),
				MarkdownDescription: "`utc` (default), `localtime` (of the host, as Windows expects it) or `timezone`.",
				Validators:          []validator.String{stringvalidator.OneOf(domainxml.Offsets...)},
			},
			"timezone": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Time zone of the offset `timezone`, such as `Europe/Paris`.",
				Validators: []validator.String{stringvalidator.RegexMatches(timeZone, "must be a name of the time zone database")},
			},
			"timers": schema.MapNestedAttribute{
				Optional:            true,
				MarkdownDescription: "Timers by libvirt's names, such as `rtc`, `pit`, `hpet`, `kvmclock`, `hypervclock` or `tsc`.",
				Validators: []validator.Map{
					mapvalidator.SizeAtLeast(1), mapvalidator.KeysAre(stringvalidator.OneOf(timerNames...)),
				},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"present": schema.BoolAttribute{Optional: true, MarkdownDescription: "Whether the guest has it."},
					"tickpolicy": schema.StringAttribute{
						Optional:            true,
						MarkdownDescription: "What becomes of ticks that the guest has missed: `delay`, `catchup`, `merge` or `discard`.",
						Validators:          []validator.String{stringvalidator.OneOf("delay", "catchup", "merge", "discard")},
					},
				}},
			},
		},
	}}
}

func checkClock(_ context.Context, m model, diags *diag.Diagnostics) {
	c := tfvalue.Fields[clockModel](m.Clock)
	if has := c.Offset.ValueString() == "timezone"; isSet(c.Offset) && !c.TimeZone.IsUnknown() && has == c.TimeZone.IsNull() {
		diags.AddAttributeError(path.Root("clock").AtName("timezone"), "A time zone for the offset timezone",
			"The offset timezone needs a timezone, such as Europe/Paris, and no other offset has one.")
	}
}

func clockIntent(_ context.Context, m model, want *domainxml.Machine, _ *diag.Diagnostics) {
	if m.Clock.IsNull() {
		return
	}
	c := tfvalue.Fields[clockModel](m.Clock)
	is := domainxml.Clock{Offset: c.Offset.ValueString(), TimeZone: c.TimeZone.ValueString()}
	for name, t := range objects[timerModel](c.Timers) {
		if is.Timers == nil {
			is.Timers = map[string]domainxml.Timer{}
		}
		is.Timers[name] = domainxml.Timer{Present: yesNo(t.Present), TickPolicy: t.TickPolicy.ValueString()}
	}
	if is.Offset != "utc" || is.Timers != nil {
		want.Clock = &is
	}
}

// yesNo is libvirt's word for a value; empty if it is null.
func yesNo(b types.Bool) string {
	if b.IsNull() {
		return ""
	}
	return map[bool]string{true: "yes", false: "no"}[b.ValueBool()]
}

// readClock shows the default clock only if the state has one.
func readClock(m *model, is domainxml.Machine) {
	c := domainxml.Clock{Offset: "utc"}
	if is.Clock != nil {
		c = *is.Clock
	} else if m.Clock.IsNull() {
		m.Clock = types.ObjectNull(clockTypes)
		return
	}
	timers := types.MapNull(types.ObjectType{AttrTypes: timerTypes})
	if len(c.Timers) > 0 {
		all := map[string]attr.Value{}
		for name, t := range c.Timers {
			present := types.BoolNull()
			if t.Present != "" {
				present = types.BoolValue(t.Present == "yes")
			}
			all[name] = types.ObjectValueMust(timerTypes, map[string]attr.Value{
				"present": present, "tickpolicy": tfvalue.OrNull(t.TickPolicy),
			})
		}
		timers = types.MapValueMust(types.ObjectType{AttrTypes: timerTypes}, all)
	}
	m.Clock = types.ObjectValueMust(clockTypes, map[string]attr.Value{
		"offset": types.StringValue(c.Offset), "timezone": tfvalue.OrNull(c.TimeZone), "timers": timers,
	})
}
