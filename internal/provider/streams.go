package provider

import (
	"context"
	"iter"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
)

// further are the servers of lists and actions, which the protocol's own interface does not have yet. The framework's is all of them.
type further interface {
	tfprotov6.ProviderServer
	tfprotov6.ListResourceServer
	tfprotov6.ActionServer
}

var _ further = server{}

func (s server) ValidateListResourceConfig(ctx context.Context,
	r *tfprotov6.ValidateListResourceConfigRequest,
) (*tfprotov6.ValidateListResourceConfigResponse, error) {
	return visible(s.next.ValidateListResourceConfig(ctx, r))
}

func (s server) ListResource(ctx context.Context, r *tfprotov6.ListResourceRequest) (*tfprotov6.ListResourceServerStream, error) {
	stream, err := visible(s.next.ListResource(ctx, r))
	if stream != nil {
		stream.Results = each(stream.Results, func(result tfprotov6.ListResourceResult) tfprotov6.ListResourceResult {
			_, _ = visible(&result, nil)
			result.DisplayName = tfvalue.Visible(result.DisplayName)
			return result
		})
	}
	return stream, err
}

func (s server) ValidateActionConfig(ctx context.Context,
	r *tfprotov6.ValidateActionConfigRequest,
) (*tfprotov6.ValidateActionConfigResponse, error) {
	return visible(s.next.ValidateActionConfig(ctx, r))
}

func (s server) PlanAction(ctx context.Context, r *tfprotov6.PlanActionRequest) (*tfprotov6.PlanActionResponse, error) {
	return visible(s.next.PlanAction(ctx, r))
}

func (s server) InvokeAction(ctx context.Context, r *tfprotov6.InvokeActionRequest) (*tfprotov6.InvokeActionServerStream, error) {
	stream, err := visible(s.next.InvokeAction(ctx, r))
	if stream != nil {
		stream.Events = each(stream.Events, func(event tfprotov6.InvokeActionEvent) tfprotov6.InvokeActionEvent {
			switch is := event.Type.(type) {
			case tfprotov6.ProgressInvokeActionEventType:
				is.Message = tfvalue.Visible(is.Message)
				event.Type = is
			case tfprotov6.CompletedInvokeActionEventType:
				_, _ = visible(&is, nil)
			}
			return event
		})
	}
	return stream, err
}

// each is a stream whose values have passed f.
func each[T any](of iter.Seq[T], f func(T) T) iter.Seq[T] {
	return func(push func(T) bool) {
		for value := range of {
			if !push(f(value)) {
				return
			}
		}
	}
}
