package provider

import (
	"errors"
	"reflect"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// visible escapes the diagnostics of a response, or the error of a function, for a terminal.
func visible[R any](answer *R, err error) (*R, error) {
	if err != nil {
		err = errors.New(tfvalue.Visible(err.Error()))
	}
	if answer == nil {
		return nil, err
	}
	if field := reflect.ValueOf(answer).Elem().FieldByName("Diagnostics"); field.IsValid() {
		for _, d := range field.Interface().([]*tfprotov6.Diagnostic) {
			d.Summary, d.Detail = tfvalue.Visible(d.Summary), tfvalue.Visible(d.Detail)
		}
	}
	if called, is := any(answer).(*tfprotov6.CallFunctionResponse); is && called.Error != nil {
		called.Error.Text = tfvalue.Visible(called.Error.Text)
	}
	return answer, err
}
