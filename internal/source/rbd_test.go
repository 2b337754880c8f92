package source

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestParseMonitors(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		want string
	}{
		{"addresses and names", []string{"192.0.2.1:6789", "Mon-b.example.com:6790"}, "192.0.2.1:6789 Mon-b.example.com:6790"},
		{"no port", []string{"192.0.2.1", "[2001:db8::1]"}, "192.0.2.1:6789 [2001:db8::1]:6789"},
		{"IPv6", []string{"[2001:DB8::1]:6789"}, "[2001:db8::1]:6789"},
		{"messenger v1", []string{"v1:192.0.2.1:6789", "v1:192.0.2.2"}, "192.0.2.1:6789 192.0.2.2:6789"},
		{"both messengers", []string{"[v2:192.0.2.1:3300/0,v1:192.0.2.1:6789/0]"}, "192.0.2.1:6789"},
		{"both messengers the other way round", []string{"[v1:192.0.2.1:6789/0,v2:192.0.2.1:3300/0]"}, "192.0.2.1:6789"},
		{"both messengers over IPv6", []string{"[v2:[2001:db8::1]:3300/0,v1:[2001:db8::1]:6789/0]"}, "[2001:db8::1]:6789"},
		{"messenger v2 alone", []string{"v2:192.0.2.1:3300", "[v2:192.0.2.2]"}, "192.0.2.1:3300 192.0.2.2:3300"},
		{"messenger v2 on a port of its own", []string{"[v2:192.0.2.1:13300/0]"}, "192.0.2.1:13300"},
		{"messenger v1 on the port of v2 beside a usable one", []string{"[v1:192.0.2.1:3300/0,v2:192.0.2.1:3301/0]"}, "192.0.2.1:3301"},
		{"without messenger on the port of v2", []string{"192.0.2.1:3300"}, "192.0.2.1:3300"},
		{"one that can't be used among others", []string{"v2:192.0.2.1:6789", "192.0.2.2"}, "192.0.2.2:6789"},
		{"a list in one", []string{"192.0.2.1, 192.0.2.2:6790"}, "192.0.2.1:6789 192.0.2.2:6790"},
		{"mon_host", []string{"[v2:192.0.2.1:3300/0,v1:192.0.2.1:6789/0],[v2:192.0.2.2:3300/0,v1:192.0.2.2:6789/0]"}, "192.0.2.1:6789 192.0.2.2:6789"},
		{"the same twice", []string{"192.0.2.1", "v1:192.0.2.1:6789"}, "192.0.2.1:6789"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			servers, err := ParseMonitors(tt.in)
			var got []string
			for _, s := range servers {
				got = append(got, net.JoinHostPort(s.Host, strconv.FormatInt(*s.Port, 10)))
			}
			if err != nil || strings.Join(got, " ") != tt.want {
				t.Errorf("got %v, %v, want %s", got, err, tt.want)
			}
		})
	}
}

func TestParseMonitors_Refused(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		want string
	}{
		{"none", nil, "no monitor"},
		{"an empty one", []string{""}, `"" is no monitor`},
		{"an empty one among others", []string{"192.0.2.1,"}, `"" is no monitor`},
		{"IPv6 without brackets", []string{"2001:db8::1"}, "needs brackets"},
		{"IPv6 without brackets and with messenger", []string{"v1:2001:db8::1"}, "needs brackets"},
		{"port 0", []string{"a:0"}, "between 1 and 65535"},
		{"high port", []string{"a:65536"}, "between 1 and 65535"},
		{"no closing bracket", []string{"[v1:192.0.2.1:6789"}, "no closing bracket"},
		{"a path", []string{"a:6789/etc"}, "only a number may follow the slash"},
		{"a line break", []string{"a\nb"}, "no host name"},
		{"a URL", []string{"https://a"}, "is no monitor"},
		{"messengers on each other's ports", []string{"[v2:192.0.2.1:6789/0,v1:192.0.2.1:3300/0]"}, "no client can be told to use the monitors [v2:192.0.2.1:6789/0,v1:192.0.2.1:3300/0]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got, err := ParseMonitors(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want an error with %q", got, err, tt.want)
			}
		})
	}
}

func FuzzParseMonitors(f *testing.F) {
	for _, s := range []string{"192.0.2.1:6789", "[v2:[2001:db8::1]:3300/0,v1:[2001:db8::1]:6789/0]", "v1:a", "[", "]],[[", "[v2:", ",", "[::1]/1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		servers, err := ParseMonitors([]string{s})
		if err == nil && len(servers) == 0 {
			t.Errorf("%q gives neither a server nor an error", s)
		}
		for _, server := range servers {
			if server.Host == "" || strings.ContainsAny(server.Host, "[]/, ") || *server.Port < 1 || *server.Port > 65535 {
				t.Errorf("%q gives %+v", s, server)
			}
		}
	})
}
