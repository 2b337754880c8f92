package machine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// agent is a host whose domain's agent returns these values; a command without one fails.
type agent struct {
	busy
	says  map[string]string
	asked []string
}

func (h *agent) AskAgent(_ context.Context, _, command string, _ map[string]any, answer any) error {
	h.asked = append(h.asked, strings.TrimPrefix(command, "guest-"))
	text, has := h.says[command]
	if !has {
		return errors.New(command + " has failed")
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal([]byte(text), answer)
}

func TestCloudInit(t *testing.T) {
	const all = `{"supported_commands": [{"name": "guest-file-open", "enabled": true}, {"name": "guest-file-read", "enabled": true},
		{"name": "guest-file-close", "enabled": true}]}`
	read := func(json string) map[string]string { // in Base64, as JSON has bytes
		return map[string]string{"guest-info": all, "guest-file-open": "1000", "guest-file-close": "{}", "guest-file-read": json}
	}
	for name, c := range map[string]struct {
		says    map[string]string
		ended   bool
		errors  []string
		refused bool
		why     string
		asked   string
	}{
		// {"v1": {"datasource": "None", "errors": []}}
		"it has ended": {
			says: read(`{"count": 44, "eof": true, "buf-b64": "eyJ2MSI6IHsiZGF0YXNvdXJjZSI6ICJOb25lIiwgImVycm9ycyI6IFtdfX0="}`), ended: true,
			asked: "info file-open file-read file-close",
		},
		// {"v1": {"errors": ["a", "b"]}}
		"it has failed": {says: read(`{"buf-b64": "eyJ2MSI6IHsiZXJyb3JzIjogWyJhIiwgImIiXX19"}`), ended: true, errors: []string{"a", "b"}},
		// {"v1"
		"its file is half written": {says: read(`{"buf-b64": "eyJ2MSI="}`), why: "unexpected end"},
		// {}
		"its file is another one":      {says: read(`{"buf-b64": "e30="}`), why: "has no v1"},
		"there is no file":             {says: map[string]string{"guest-info": all}, why: "guest-file-open has failed", asked: "info file-open"},
		"the agent does not read":      {says: map[string]string{"guest-info": all, "guest-file-open": "1"}, why: "guest-file-read has failed"},
		"the agent does not answer":    {why: "guest-info has failed", asked: "info"},
		"the agent must not":           {says: map[string]string{"guest-info": strings.Replace(all, "true", "false", 1)}, refused: true, why: "it does not allow guest-file-open", asked: "info"},
		"the agent has no such thing":  {says: map[string]string{"guest-info": `{"version": "1"}`}, refused: true, why: "guest-file-open, guest-file-read, guest-file-close"},
		"the agent says something bad": {says: map[string]string{"guest-info": all, "guest-file-open": `{}`}, why: "cannot unmarshal"},
	} {
		h, got := &agent{says: c.says}, CloudInit{}
		Manager{log: quiet, host: h}.LookAtCloudInit(t.Context(), "", &got)
		if got.Ended != c.ended || got.Refused != c.refused || !slices.Equal(got.Errors, c.errors) || got.IsOver() != (c.ended || c.refused) {
			t.Errorf("%s: it is %+v", name, got)
		}
		if (got.Why == nil) != (c.why == "") || c.why != "" && !strings.Contains(got.Why.Error(), c.why) {
			t.Errorf("%s: why is %v", name, got.Why)
		}
		if asked := strings.Join(h.asked, " "); c.asked != "" && asked != c.asked {
			t.Errorf("%s: the agent was asked for %s", name, asked)
		}
	}
}

// What the agent can is asked once.
func TestCloudInit_AsksForTheFileAgain(t *testing.T) {
	h := &agent{says: map[string]string{"guest-info": `{"supported_commands": [{"name": "guest-file-open", "enabled": true},
		{"name": "guest-file-read", "enabled": true}, {"name": "guest-file-close", "enabled": true}]}`}}
	var c CloudInit
	for range 3 {
		Manager{log: quiet, host: h}.LookAtCloudInit(t.Context(), "", &c)
	}
	if asked := strings.Join(h.asked, " "); asked != "info"+strings.Repeat(" file-open", 3) {
		t.Errorf("the agent was asked for %s", asked)
	}
}
