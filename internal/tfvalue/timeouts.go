package tfvalue

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
)

// Timeouts is the attribute timeouts of a resource with these defaults; one without an update has none of it.
func Timeouts(ctx context.Context, create, read, update, remove time.Duration) schema.Attribute {
	description := func(what string, timeout time.Duration, more string) string {
		return fmt.Sprintf("Timeout of %s, as a [duration](https://pkg.go.dev/time#ParseDuration) such as `90s` or `1h30m`. Defaults to "+
			"`%dm`.%s",
			what, int(timeout.Minutes()), more)
	}
	return timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Read: true, Update: update != 0, Delete: true,
		CreateDescription: description("a create", create, ""),
		ReadDescription:   description("a read, also of a plan", read, ""),
		UpdateDescription: description("an update", update, ""),
		DeleteDescription: description("a destroy", remove, " A destroy uses the value that was applied last."),
	})
}
