package machine

import (
	"context"
	"testing"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/domainxml"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
)

// leased is a host whose network has a lease for a guest that is off, or that was saved with its memory.
type leased struct {
	oneDomain
	saved string
	end   int64
}

func (h *leased) SavedXML(context.Context, string) (string, error) { return h.saved, nil }

func (h *leased) Start(context.Context, string) error { return nil }

func (h *leased) Leases(context.Context) (map[host.Lease]int64, error) {
	return map[host.Lease]int64{{MAC: "52:54:00:00:00:01", IP: "192.0.2.7"}: h.end}, nil
}

// A lease from before the boot counts once it is renewed. Not renewed for a while are those of a guest that goes on where it was saved, never those
// without end, and what an agent reports is of this run.
func TestAwait_LeaseOfRunBefore(t *testing.T) {
	for name, c := range map[string]struct {
		saved       string
		before, now int64
		agent       bool
		counts      bool
	}{
		"the same lease":         {before: 100, now: 100},
		"a renewed lease":        {before: 100, now: 200, counts: true},
		"a lease without end":    {counts: true},
		"a resumed guest":        {saved: "<domain/>", before: 100, now: 100, counts: true},
		"the answer of an agent": {before: 100, now: 100, agent: true, counts: true},
	} {
		h := &leased{saved: c.saved, end: c.before}
		m := Manager{log: quiet, host: h, Leases: map[host.Lease]int64{{MAC: "of an earlier boot"}: 1}}
		if err := m.boot(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		h.end = c.now
		is := domainxml.Machine{
			Interfaces: map[string]domainxml.Interface{"lan": {MAC: "52:54:00:00:00:01"}}, AgentConnected: c.agent,
			Addresses: map[string][]string{"lan": {"192.0.2.7"}},
		}
		if err := m.dropOldAddresses(t.Context(), &is); err != nil || len(is.Addresses["lan"]) == 1 != c.counts {
			t.Errorf("%s: the addresses are %v, %v", name, is.Addresses, err)
		}
	}
}
