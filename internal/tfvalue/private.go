package tfvalue

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// PrivateReader is Terraform's private state of a resource in a request.
type PrivateReader interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
}

// PrivateState is Terraform's private state of a resource in a response.
type PrivateState interface {
	PrivateReader
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// LoadPrivate returns the value of a key; ok is false if it has none. err is that of a value which can't be decoded.
func LoadPrivate[T any](ctx context.Context, private PrivateReader, key string, diags *diag.Diagnostics) (value T, ok bool, err error) {
	text, d := private.GetKey(ctx, key)
	diags.Append(d...)
	if len(text) == 0 {
		return value, false, nil
	}
	err = json.Unmarshal(text, &value)
	return value, true, err
}

// SavePrivate sets the value of a key.
func SavePrivate(ctx context.Context, private PrivateState, key string, value any, diags *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diags.AddError("Unwritable private state", err.Error())
		return
	}
	diags.Append(private.SetKey(ctx, key, text)...)
}
