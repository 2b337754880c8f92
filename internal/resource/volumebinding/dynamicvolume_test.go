package volumebinding

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/providerdata"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/revert"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/secret"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/source/dynamic"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

// createdServer answers each PUT with 201 and the same volume, and notes what it is asked.
func createdServer(t *testing.T) (k *dynamicVolume, asked func() string) {
	t.Helper()
	var seen []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, strings.TrimSpace(r.Method+" "+r.Header.Get("If-Match")))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("nbd: {server: '192.0.2.7:10809', export: data}"))
	}))
	t.Cleanup(web.Close)
	values := map[string]attr.Value{
		"url": types.StringValue(web.URL + "/volume"), "ca_certificate": types.StringNull(), "namespace": types.StringNull(),
		"secret_ref": types.ObjectNull(map[string]attr.Type{"namespace": types.StringType, "name": types.StringType}),
	}
	kinds := map[string]attr.Type{}
	for name, v := range values {
		kinds[name] = v.Type(t.Context())
	}
	return &dynamicVolume{
		binding: &binding{Resource: providerdata.Resource{Provider: providerdata.New("team", host.NewRegistry(nil), nil)}},
		m:       model{ID: types.StringValue("id"), Name: types.StringValue("data"), Hosts: types.SetNull(types.StringType)},
		from:    dynamicModel{Parameters: types.MapNull(types.StringType), Server: types.ObjectValueMust(kinds, values)},
	}, func() string { return strings.Join(seen, ", ") }
}

// What a create that fails has made is removed, unless a machine may have it.
func TestDynamicVolume_UndoKeepsVolumeThatMayBeUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		actual volume.Volume
		asked  string
	}{
		"not resolved":            {volume.Volume{}, "PUT, DELETE"},
		"no machine has it":       {volume.Volume{Images: []volume.Image{{Type: "network", Name: "data"}}}, "PUT, DELETE"},
		"a host does not tell it": {volume.Volume{Images: []volume.Image{{Type: "block", Name: "/dev/a", Hosts: []string{"off"}}}}, "PUT"},
	} {
		k, asked := createdServer(t)
		var undo revert.Stack
		var diags diag.Diagnostics
		actual, own := volume.Volume{}, privateState{Nonce: "n"}
		if err := k.create(t.Context(), &own, &actual, &undo, &diags); err != nil || own.Answer == nil {
			t.Fatalf("%s: %v", name, err)
		}
		actual = tt.actual
		err := undo.Revert(context.WithoutCancel(t.Context()))
		if got := asked(); got != tt.asked || (err == nil) != strings.Contains(got, "DELETE") || diags.HasError() {
			t.Errorf("%s: it was asked %s; %v, %v", name, got, err, diags)
		}
	}
}

// A new instance gets the volume of the one that it replaces, and has none made; an answer that is not proven to be that volume is refused.
func TestDynamicVolume_ReplacedInstance(t *testing.T) {
	k, asked := createdServer(t)
	var diags diag.Diagnostics
	server, err := k.server(t.Context(), &diags)
	if err != nil {
		t.Fatal(err)
	}
	first, isNew, err := k.ask(t.Context(), server, nil, &diags)
	if err != nil || !isNew || len(diags) > 0 {
		t.Fatalf("%v, %v, %v", isNew, err, diags)
	}
	same, isNew, err := k.ask(t.Context(), server, &secret.Record{Volume: first.Fingerprint()}, &diags)
	if err != nil || isNew || same.Fingerprint() != first.Fingerprint() || diags.WarningsCount() != 1 {
		t.Errorf("%v, %v, %v, %v", same, isNew, err, diags)
	}
	for _, known := range []string{"another", ""} {
		if _, isNew, err := k.ask(t.Context(), server, &secret.Record{Volume: known}, &diags); isNew || !errors.Is(err, dynamic.ErrLost) {
			t.Errorf("known as %q: %v, %v", known, isNew, err)
		}
	}
	if got := asked(); got != "PUT, PUT *, PUT *, PUT *" {
		t.Errorf("it was asked %s", got)
	}
}
