package virtualmachine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
)

// maxLimit is QEMU's.
const maxLimit = 1e15

const sizeIOPS = "size_iops_sec"

func ioTuneAttribute() schema.Attribute {
	all := map[string]schema.Attribute{}
	for _, name := range domainxml.IOTuneNames {
		what := "Limit of " + strings.NewReplacer("total", "reads and writes together", "read", "reads", "write", "writes",
			"_bytes_sec", ", in bytes per second", "_iops_sec", ", in requests per second").Replace(name) + "."
		base, isLength := strings.CutSuffix(name, "_length")
		average, isMax := strings.CutSuffix(base, "_max")
		switch {
		case name == sizeIOPS:
			what = "Bytes up to which a request counts as one; larger ones count as several. Requires a limit of requests."
		case isLength:
			what = fmt.Sprintf("Seconds for which bursts up to `%s` may last. Defaults to 1.", base)
		case isMax:
			what = fmt.Sprintf("Limit of bursts above `%s`, in the same unit.", average)
		}
		all[name] = schema.Int64Attribute{
			Optional: true, MarkdownDescription: what, Validators: []validator.Int64{int64validator.Between(1, maxLimit)},
		}
	}
	return schema.SingleNestedAttribute{
		Optional: true, Attributes: all,
		MarkdownDescription: "Limits of the disk's throughput. For bytes, and for requests, either the total is limited or reads " +
			"and writes are. Changed live. Not for drives.",
	}
}

var ioTuneTypes = attributesOf(ioTuneAttribute().GetType())

func ioTuneOf(o types.Object) (t domainxml.IOTune) {
	for n, name := range domainxml.IOTuneNames {
		t[n] = uint64(fieldsOf(o).number(name))
	}
	return t
}

func ioTuneObject(t domainxml.IOTune) attr.Value {
	if t == (domainxml.IOTune{}) {
		return types.ObjectNull(ioTuneTypes)
	}
	values := map[string]attr.Value{}
	for n, name := range domainxml.IOTuneNames {
		values[name] = numberOrNull(uint(t[n]))
	}
	return types.ObjectValueMust(ioTuneTypes, values)
}

// checkIOTune refuses limits that libvirt or QEMU refuse together.
func (d diskModel) checkIOTune(key string, diags *diag.Diagnostics) {
	if !isSet(d.IOTune) {
		return
	}
	at, is := diskPath(key).AtName("iotune"), fieldsOf(d.IOTune)
	absent := func(name string) bool { return is[name].IsNull() }
	if !slices.ContainsFunc(domainxml.IOTuneNames[:], func(name string) bool { return !absent(name) }) {
		diags.AddAttributeError(at, "No limit", fmt.Sprintf("Disk %s has an iotune without a limit. Add one, or leave iotune out.", key))
	}
	for _, name := range domainxml.IOTuneNames {
		burst, isLength := strings.CutSuffix(name, "_length")
		average, isMax := strings.CutSuffix(name, "_max")
		all := strings.NewReplacer("read_", "total_", "write_", "total_").Replace(name)
		wrong := ""
		switch {
		case !isSet(is[name]):
		case isLength && absent(burst):
			wrong = "needs " + burst
		case isMax && absent(average):
			wrong = "needs " + average
		case isMax && is.number(name) < is.number(average):
			wrong = "is below " + average
		case all != name && isSet(is[all]):
			wrong = "excludes " + all
		case name == sizeIOPS && absent("total_iops_sec") && absent("read_iops_sec") && absent("write_iops_sec"):
			wrong = "needs a limit of requests, such as total_iops_sec"
		}
		if wrong != "" {
			diags.AddAttributeError(at.AtName(name), "Limits that don't go together",
				fmt.Sprintf("Limits of disk %s: %s %s. Change or leave out one of them.", key, name, wrong))
		}
	}
}
