package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// server is the server that Terraform calls. All of its responses pass visible: an error may repeat text of a host, a cluster, a registry
// or a guest, and a terminal executes its control characters. server embeds nothing, so that a new method of the protocol can't bypass
// visible unnoticed.
type server struct {
	next    further
	schemas func(context.Context) *tfprotov6.GetProviderSchemaResponse
}

var _ tfprotov6.ProviderServer = server{}

// NewServer creates the server for main and for tests.
func NewServer(release Release) tfprotov6.ProviderServer {
	next := providerserver.NewProtocol6(New(release)())().(further)
	return server{next, schemas(next)}
}

func (s server) GetMetadata(ctx context.Context, r *tfprotov6.GetMetadataRequest) (*tfprotov6.GetMetadataResponse, error) {
	return visible(s.next.GetMetadata(ctx, r))
}

func (s server) GetProviderSchema(ctx context.Context,
	r *tfprotov6.GetProviderSchemaRequest,
) (*tfprotov6.GetProviderSchemaResponse, error) {
	return visible(s.next.GetProviderSchema(ctx, r))
}

func (s server) GetResourceIdentitySchemas(ctx context.Context,
	r *tfprotov6.GetResourceIdentitySchemasRequest,
) (*tfprotov6.GetResourceIdentitySchemasResponse, error) {
	return visible(s.next.GetResourceIdentitySchemas(ctx, r))
}

func (s server) ValidateProviderConfig(ctx context.Context,
	r *tfprotov6.ValidateProviderConfigRequest,
) (*tfprotov6.ValidateProviderConfigResponse, error) {
	answer, err := s.next.ValidateProviderConfig(ctx, r)
	if answer != nil {
		answer.Diagnostics = append(answer.Diagnostics, unprintable(s.schemas(ctx).Provider, r.Config)...)
	}
	return visible(answer, err)
}

func (s server) ConfigureProvider(ctx context.Context,
	r *tfprotov6.ConfigureProviderRequest,
) (*tfprotov6.ConfigureProviderResponse, error) {
	return visible(s.next.ConfigureProvider(ctx, r))
}

func (s server) StopProvider(ctx context.Context, r *tfprotov6.StopProviderRequest) (*tfprotov6.StopProviderResponse, error) {
	return visible(s.next.StopProvider(ctx, r))
}

func (s server) ValidateResourceConfig(ctx context.Context,
	r *tfprotov6.ValidateResourceConfigRequest,
) (*tfprotov6.ValidateResourceConfigResponse, error) {
	answer, err := s.next.ValidateResourceConfig(ctx, r)
	if answer != nil {
		answer.Diagnostics = append(answer.Diagnostics, unprintable(s.schemas(ctx).ResourceSchemas[r.TypeName], r.Config)...)
	}
	return visible(answer, err)
}

func (s server) UpgradeResourceState(ctx context.Context,
	r *tfprotov6.UpgradeResourceStateRequest,
) (*tfprotov6.UpgradeResourceStateResponse, error) {
	if s.isCurrent(ctx, r) {
		return &tfprotov6.UpgradeResourceStateResponse{UpgradedState: &tfprotov6.DynamicValue{JSON: r.RawState.JSON}}, nil
	}
	return visible(s.next.UpgradeResourceState(ctx, r))
}

func (s server) ReadResource(ctx context.Context, r *tfprotov6.ReadResourceRequest) (*tfprotov6.ReadResourceResponse, error) {
	return visible(s.next.ReadResource(ctx, r))
}

func (s server) PlanResourceChange(ctx context.Context,
	r *tfprotov6.PlanResourceChangeRequest,
) (*tfprotov6.PlanResourceChangeResponse, error) {
	return visible(s.next.PlanResourceChange(ctx, r))
}

func (s server) ApplyResourceChange(ctx context.Context,
	r *tfprotov6.ApplyResourceChangeRequest,
) (*tfprotov6.ApplyResourceChangeResponse, error) {
	return visible(s.next.ApplyResourceChange(ctx, r))
}

func (s server) ImportResourceState(ctx context.Context,
	r *tfprotov6.ImportResourceStateRequest,
) (*tfprotov6.ImportResourceStateResponse, error) {
	return visible(s.next.ImportResourceState(ctx, r))
}

func (s server) MoveResourceState(ctx context.Context,
	r *tfprotov6.MoveResourceStateRequest,
) (*tfprotov6.MoveResourceStateResponse, error) {
	return visible(s.next.MoveResourceState(ctx, r))
}

func (s server) UpgradeResourceIdentity(ctx context.Context,
	r *tfprotov6.UpgradeResourceIdentityRequest,
) (*tfprotov6.UpgradeResourceIdentityResponse, error) {
	return visible(s.next.UpgradeResourceIdentity(ctx, r))
}

func (s server) GenerateResourceConfig(ctx context.Context,
	r *tfprotov6.GenerateResourceConfigRequest,
) (*tfprotov6.GenerateResourceConfigResponse, error) {
	return visible(s.next.GenerateResourceConfig(ctx, r))
}

func (s server) ValidateDataResourceConfig(ctx context.Context,
	r *tfprotov6.ValidateDataResourceConfigRequest,
) (*tfprotov6.ValidateDataResourceConfigResponse, error) {
	answer, err := s.next.ValidateDataResourceConfig(ctx, r)
	if answer != nil {
		answer.Diagnostics = append(answer.Diagnostics, unprintable(s.schemas(ctx).DataSourceSchemas[r.TypeName], r.Config)...)
	}
	return visible(answer, err)
}

func (s server) ReadDataSource(ctx context.Context, r *tfprotov6.ReadDataSourceRequest) (*tfprotov6.ReadDataSourceResponse, error) {
	return visible(s.next.ReadDataSource(ctx, r))
}

func (s server) CallFunction(ctx context.Context, r *tfprotov6.CallFunctionRequest) (*tfprotov6.CallFunctionResponse, error) {
	return visible(s.next.CallFunction(ctx, r))
}

func (s server) GetFunctions(ctx context.Context, r *tfprotov6.GetFunctionsRequest) (*tfprotov6.GetFunctionsResponse, error) {
	return visible(s.next.GetFunctions(ctx, r))
}

func (s server) ValidateEphemeralResourceConfig(ctx context.Context,
	r *tfprotov6.ValidateEphemeralResourceConfigRequest,
) (*tfprotov6.ValidateEphemeralResourceConfigResponse, error) {
	return visible(s.next.ValidateEphemeralResourceConfig(ctx, r))
}

func (s server) OpenEphemeralResource(ctx context.Context,
	r *tfprotov6.OpenEphemeralResourceRequest,
) (*tfprotov6.OpenEphemeralResourceResponse, error) {
	return visible(s.next.OpenEphemeralResource(ctx, r))
}

func (s server) RenewEphemeralResource(ctx context.Context,
	r *tfprotov6.RenewEphemeralResourceRequest,
) (*tfprotov6.RenewEphemeralResourceResponse, error) {
	return visible(s.next.RenewEphemeralResource(ctx, r))
}

func (s server) CloseEphemeralResource(ctx context.Context,
	r *tfprotov6.CloseEphemeralResourceRequest,
) (*tfprotov6.CloseEphemeralResourceResponse, error) {
	return visible(s.next.CloseEphemeralResource(ctx, r))
}

// isCurrent reports whether a state has its schema's version, as in nearly each of these requests. Terraform and OpenTofu have removed by
// then what the schema does not have, and decode the JSON themselves. The framework decodes, walks and encodes it: a fifteenth of a plan.
func (s server) isCurrent(ctx context.Context, r *tfprotov6.UpgradeResourceStateRequest) bool {
	schema := s.schemas(ctx).ResourceSchemas[r.TypeName]
	return schema != nil && schema.Version == r.Version && r.RawState != nil && len(r.RawState.JSON) > 0
}
