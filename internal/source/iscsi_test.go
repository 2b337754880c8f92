package source

import (
	"strings"
	"testing"
)

func TestParsePortal(t *testing.T) {
	tests := []struct{ in, want string }{
		{"192.0.2.1", "192.0.2.1:3260"},
		{"192.0.2.1:860", "192.0.2.1:860"},
		{"storage.example.com", "storage.example.com:3260"},
		{"storage_1:3261", "storage_1:3261"},
		{"[2001:db8::1]", "[2001:db8::1]:3260"},
		{"[2001:DB8:0::1]:3261", "[2001:db8::1]:3261"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if p, err := ParsePortal(tt.in); err != nil || p.String() != tt.want {
				t.Errorf("got %v, %v, want %s", p, err, tt.want)
			}
		})
	}
}

func TestParsePortal_Refused(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "no host name"},
		{":3260", "no host name"},
		{"a b", "no host name"},
		{"-a", "no host name"},
		{"a..b", "no host name"},
		{"https://a", "host:port"},
		{"a:", "host:port"},
		{"a:b", "host:port"},
		{"a:1:2", "host:port"},
		{"a:123456", "host:port"},
		{"a:0", "between 1 and 65535"},
		{"a:65536", "between 1 and 65535"},
		{"192.0.2.300", "no IPv4 address"},
		{"2001:db8::1", "needs brackets"},
		{"2001:db8::1:3260", "needs brackets"},
		{"[2001:db8::1", "host:port"},
		{"[192.0.2.1]:3260", "no IPv6 address"},
		{"[fe80::1%eth0]", "no IPv6 address"},
		{"[]", "no IPv6 address"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			if p, err := ParsePortal(tt.in); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v, want an error with %q", p, err, tt.want)
			}
		})
	}
}

func FuzzParsePortal(f *testing.F) {
	for _, s := range []string{"192.0.2.1", "a.example:3260", "[2001:db8::1]:860", "[::ffff:192.0.2.1]", "a:", "[", "::1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParsePortal(s)
		if err != nil {
			return
		}
		if p.Host == "" || strings.ContainsAny(p.Host, "[]/ ") || p.Port < 1 || p.Port > 65535 {
			t.Errorf("%q became %+v", s, p)
		}
		if again, err := ParsePortal(p.String()); err != nil || again != p {
			t.Errorf("%q became %v, and that %v, %v", s, p, again, err)
		}
	})
}

func TestISCSIName(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"target", "iqn.2001-04.com.example:storage.disk1", "iqn.2001-04.com.example:storage.disk1"},
		{"without own part", "iqn.2001-04.com.example", "iqn.2001-04.com.example"},
		{"case is kept", "iqn.2001-04.com.Example:Disk", "iqn.2001-04.com.Example:Disk"},
		{"one trailing slash", "iqn.2001-04.com.example:disk/", "iqn.2001-04.com.example:disk"},
		{"eui", "eui.02004567A425678D", "eui.02004567A425678D"},
		{"naa", "naa.52004567BA64678D", "naa.52004567BA64678D"},
		{"long naa", "naa.62004567BA64678D0123456789ABCDEF", "naa.62004567BA64678D0123456789ABCDEF"},

		{"empty", "", ""},
		{"two trailing slashes", "iqn.2001-04.com.example:disk//", ""},
		{"slash inside", "iqn.2001-04.com.example:a/b", ""},
		{"unit", "iqn.2001-04.com.example:disk/1", ""},
		{"no date", "iqn.com.example:disk", ""},
		{"space", "iqn.2001-04.com.example:a b", ""},
		{"control character", "iqn.2001-04.com.example:a\x00b", ""},
		{"trailing newline", "iqn.2001-04.com.example:disk\n", ""},
		{"short eui", "eui.0200", ""},
		{"another scheme", "wwn.52004567BA64678D", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ISCSIName(tt.in)
			if got != tt.want || (err == nil) != (tt.want != "") {
				t.Errorf("ISCSIName(%q) = %q, %v", tt.in, got, err)
			}
		})
	}
}
