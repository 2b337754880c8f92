package provider

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// Whichever question Terraform asks, what it hears has no escape sequence in it: each answer repeats a type that the test makes up.
func TestServer_EveryAnswerIsVisible(t *testing.T) {
	const hostile = "a\x1b]0;owned\x07\u202e\u200b"
	server := reflect.ValueOf(NewServer("test"))
	answered := 0
	for i := range server.NumMethod() {
		name, method := server.Type().Method(i).Name, server.Method(i)
		question := reflect.New(method.Type().In(1).Elem())
		repeats := false
		for _, field := range []string{"TypeName", "TargetTypeName"} {
			if f := question.Elem().FieldByName(field); f.IsValid() {
				f.SetString(hostile)
				repeats = true
			}
		}
		if !repeats {
			continue
		}
		answer := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), question})[0]
		text := ""
		for _, d := range answer.Elem().FieldByName("Diagnostics").Interface().([]*tfprotov6.Diagnostic) {
			text += d.Summary + d.Detail
		}
		if !strings.Contains(text, `a\x1b]0;owned\a\u202e\u200b`) || strings.ContainsAny(text, "\x1b\a\u202e\u200b") {
			t.Errorf("%s answers %q", name, text)
		}
		answered++
	}
	if answered < 14 {
		t.Errorf("only %d methods were tried", answered)
	}
}

// The server hands on what the provider offers. What it can't hand on yet must be added to it first.
func TestServer_HandsAllOn(t *testing.T) {
	p := New("test")()
	if _, has := p.(provider.ProviderWithListResources); has {
		t.Error("server has no list resources")
	}
	if _, has := p.(provider.ProviderWithActions); has {
		t.Error("server has no actions")
	}
	if _, has := p.(provider.ProviderWithFunctions); has {
		t.Error("visible does not see the errors of functions")
	}
}

// Text stays as it is; what can't be seen is shown as Go would write it, and a password in a URL is not shown at all.
func TestVisibleText_Table(t *testing.T) {
	for text, want := range map[string]string{
		"plain, with ünïcödé, 漢字 and 🖥":           "plain, with ünïcödé, 漢字 and 🖥",
		"two\n\tlines, \"quotes\" and \\n":        "two\n\tlines, \"quotes\" and \\n",
		"\x1b[2J\x1b]8;;http://evil\x1b\\click":   `\x1b[2J\x1b]8;;http://evil\x1b\click`,
		"gone\r\b\x00\x7f":                        `gone\r\b\x00\x7f`,
		"C1 as a rune \u009b31m":                  `C1 as a rune \u009b31m`,
		"C1 as a byte \x9b31m":                    `C1 as a byte \x9b31m`,
		"turned \u202e\u2066\u200f":               `turned \u202e\u2066\u200f`,
		"no width \u200b\u200d\u2060\ufeff\u00ad": `no width \u200b\u200d\u2060\ufeff\u00ad`,
		"tags \U000e0041, lines \u2028\u2029":     `tags \U000e0041, lines \u2028\u2029`,
		"replaced \ufffd":                         "replaced \ufffd",
		"Get https://me:hunter2@h/x: no":          "Get https://me:xxxxx@h/x: no",
		"docker://a:5000/b@sha256:c http://h:80":  "docker://a:5000/b@sha256:c http://h:80",
	} {
		if got := visibleText(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
	if _, err := visible[tfprotov6.ReadResourceResponse](nil, errors.New("\x1b")); err == nil || err.Error() != `\x1b` {
		t.Errorf("the error is %q", err)
	}
}
