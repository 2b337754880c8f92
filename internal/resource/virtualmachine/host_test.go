package virtualmachine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/virtclaim/terraform-provider-virtclaim/internal/host"
	"github.com/virtclaim/terraform-provider-virtclaim/internal/machine"
)

// unchanging is a host with one machine, to which nothing comes that is waited for.
type unchanging struct {
	machine.Host
	stored, live string
	state        host.State
	// agent is what the guest's agent returns; a command that is not there fails.
	agent map[string]string
}

func (h *unchanging) AskAgent(_ context.Context, _, command string, _ map[string]any, answer any) error {
	text, has := h.agent[command]
	if !has || answer == nil {
		return errors.New("no " + command)
	}
	return json.Unmarshal([]byte(text), answer)
}

func (h *unchanging) StoredXML(context.Context, string) (string, error) { return h.stored, nil }

func (h *unchanging) LiveXML(context.Context, string) (string, error) { return h.live, nil }

func (h *unchanging) State(context.Context, string) (host.State, error) { return h.state, nil }

func (h *unchanging) Addresses(context.Context, string, bool) map[string][]string { return nil }

func (h *unchanging) AwaitEvery(ctx context.Context, _ time.Duration, _ string, done func(context.Context) (bool, error)) error {
	if end, err := done(ctx); end || err != nil {
		return err
	}
	return cmp.Or(ctx.Err(), context.DeadlineExceeded)
}

func (h *unchanging) manager() machine.Manager {
	return machine.New(h, "host-a", "", host.NewRegistry(nil), machine.Log{})
}
