package provider

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// No response of the server to any request has an escape sequence: each response repeats a name from the test.
func TestServer_EveryAnswerIsVisible(t *testing.T) {
	const hostile = "a\x1b]0;owned\x07\u202e\u200b"
	server := reflect.ValueOf(NewServer(Release{Version: "test"}))
	answered := 0
	for i := range server.NumMethod() {
		name, method := server.Type().Method(i).Name, server.Method(i)
		question := reflect.New(method.Type().In(1).Elem())
		repeats := false
		for _, field := range []string{"TypeName", "TargetTypeName", "ActionType", "Name"} {
			if f := question.Elem().FieldByName(field); f.IsValid() {
				f.SetString(hostile)
				repeats = true
			}
		}
		if !repeats {
			continue
		}
		answer := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), question})[0]
		text := said(answer.Interface())
		if !strings.Contains(text, `a\x1b]0;owned\a\u202e\u200b`) || strings.ContainsAny(text, "\x1b\a\u202e\u200b") {
			t.Errorf("%s answers %q", name, text)
		}
		answered++
	}
	if answered < 20 {
		t.Errorf("only %d methods were tried", answered)
	}
}

// said are the diagnostics of an answer, or of all that a stream has.
func said(answer any) (text string) {
	var all []*tfprotov6.Diagnostic
	switch is := answer.(type) {
	case *tfprotov6.ListResourceServerStream:
		for result := range is.Results {
			all = append(all, result.Diagnostics...)
		}
	case *tfprotov6.InvokeActionServerStream:
		for event := range is.Events {
			if end, ok := event.Type.(tfprotov6.CompletedInvokeActionEventType); ok {
				all = append(all, end.Diagnostics...)
			}
		}
	case *tfprotov6.CallFunctionResponse:
		return is.Error.Text
	default:
		all = reflect.ValueOf(answer).Elem().FieldByName("Diagnostics").Interface().([]*tfprotov6.Diagnostic)
	}
	for _, d := range all {
		text += d.Summary + d.Detail
	}
	return text
}

// Errors without a response are visible, too.
func TestServer_ErrorsAreVisible(t *testing.T) {
	if _, err := visible[tfprotov6.ReadResourceResponse](nil, errors.New("\x1b")); err == nil || err.Error() != `\x1b` {
		t.Errorf("the error is %q", err)
	}
}

// A state of the schema's version is passed on as it is; the framework has a say in others.
func TestServer_StateOfThisVersionIsPassedOn(t *testing.T) {
	server := NewServer(Release{Version: "test"})
	upgrade := func(version int64, state string) (upgraded, refused string) {
		answer, err := server.UpgradeResourceState(t.Context(), &tfprotov6.UpgradeResourceStateRequest{
			TypeName: "virtclaim_disk", Version: version, RawState: &tfprotov6.RawState{JSON: []byte(state)},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range answer.Diagnostics {
			refused += d.Summary
		}
		if answer.UpgradedState != nil {
			upgraded = string(answer.UpgradedState.JSON)
		}
		return upgraded, refused
	}
	const state = `{"name":"root"}`
	if got, refused := upgrade(1, state); got != state || refused != "" {
		t.Errorf("a state of this version becomes %q, %q", got, refused)
	}
	if got, refused := upgrade(0, state); got != "" || refused != "State of an unreleased version" {
		t.Errorf("a former state becomes %q, %q", got, refused)
	}
}
