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
	"github.com/virtclaim/terraform-provider-virtclaim/internal/tfvalue"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/volume"
)

const nbdAnswer = "nbd: {server: '192.0.2.7:10809', export: data}"

// createdServer answers each PUT with 201 and the same volume, and notes what it is asked.
func createdServer(t *testing.T) (k *dynamicVolume, asked func() string) {
	t.Helper()
	return servedBy(t, func() (int, string) { return http.StatusCreated, nbdAnswer })
}

// servedBy is a volume whose server answers each PUT with a status and a text.
func servedBy(t *testing.T, answer func() (int, string)) (k *dynamicVolume, asked func() string) {
	t.Helper()
	var seen []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, strings.TrimSpace(r.Method+" "+r.Header.Get("If-Match")))
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		status, text := answer()
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
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

// A refresh asks once, and makes nothing. What can't be told is a warning, and keeps what is known; another address is noted for the plan.
func TestDynamicVolume_Refresh(t *testing.T) {
	const elsewhere = "nbd: {server: '192.0.2.8:10809', export: data}"
	for name, tt := range map[string]struct {
		status int
		text   string
		moved  bool
		warns  string
	}{
		"the same":        {http.StatusOK, nbdAnswer, false, ""},
		"elsewhere":       {http.StatusOK, elsewhere, true, ""},
		"made elsewhere":  {http.StatusCreated, elsewhere, false, "no longer there"},
		"made again":      {http.StatusCreated, nbdAnswer, false, "has made the volume now (201)"},
		"lost":            {http.StatusPreconditionFailed, "", false, "no longer there"},
		"refused":         {http.StatusConflict, "not today", false, "not today"},
		"no answer":       {http.StatusOK, "<html>", false, "can't be used"},
		"a claim instead": {http.StatusOK, "pvc: {claimName: other}", false, "claim"},
	} {
		k, asked := servedBy(t, func() (int, string) { return tt.status, tt.text })
		var diags diag.Diagnostics
		known := answerOf(t, nbdAnswer)
		own := privateState{Answer: &known, Moved: &dynamic.Answer{}}
		k.refresh(t.Context(), &own, &diags)
		if got := asked(); got != "PUT *" || own.Answer != &known || (own.Moved != nil) != tt.moved || diags.HasError() {
			t.Errorf("%s: it was asked %s; %+v, %v", name, got, own, diags)
		}
		if (len(diags) > 0) != (tt.warns != "") || len(diags) > 0 && !strings.Contains(diags[0].Detail(), tt.warns) {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

func answerOf(t *testing.T, text string) dynamic.Answer {
	t.Helper()
	a, err := dynamic.Parse([]byte(text), "vms")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// An update goes on with what was planned only: a volume that does not grow, another claim, and an answer that has changed since are refused.
func TestDynamicVolume_Update(t *testing.T) {
	const claim = "pvc: {claimName: data}"
	for name, tt := range map[string]struct {
		was, is string
		known   bool // the volume is, in the plan
		status  int
		wrong   string
	}{
		"grows":                  {nbdAnswer, nbdAnswer, false, http.StatusOK, ""},
		"does not grow":          {nbdAnswer, "", false, http.StatusConflict, "The volume does not grow there, and nothing was changed"},
		"moves":                  {nbdAnswer, "nbd: {server: '192.0.2.8:10809', export: data}", false, http.StatusOK, ""},
		"moves after the plan":   {nbdAnswer, "nbd: {server: '192.0.2.8:10809', export: data}", true, http.StatusOK, "Plan and apply again"},
		"is another claim":       {claim, "pvc: {claimName: other}", false, http.StatusOK, `names "other" now`},
		"is a claim no longer":   {claim, nbdAnswer, false, http.StatusOK, `names "" now`},
		"is not there any more":  {nbdAnswer, "", false, http.StatusPreconditionFailed, "Put it back"},
		"is the claim as before": {claim, claim, false, http.StatusOK, ""},
	} {
		k, _ := servedBy(t, func() (int, string) { return tt.status, tt.is })
		server := k.from.Server.Attributes()
		server["namespace"] = types.StringValue("vms")
		k.from.Server = types.ObjectValueMust(k.from.Server.AttributeTypes(t.Context()), server)
		k.m.Volume = tfvalue.UnknownVolume()
		if tt.known {
			k.m.Volume = types.ObjectNull(tfvalue.VolumeTypes)
		}
		var diags diag.Diagnostics
		was := answerOf(t, tt.was)
		own := privateState{Answer: &was}
		err := k.update(t.Context(), model{}, true, &own, &diags)
		if (err == nil) != (tt.wrong == "") || err != nil && (!strings.Contains(err.Error(), tt.wrong) || own.Answer != &was) || diags.HasError() {
			t.Errorf("%s: %v, %+v, %v", name, err, own, diags)
		}
	}
}
